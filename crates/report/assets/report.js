// Draws the per-second charts when they come into view. Everything else on the page works without this.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("series").textContent);
  const drawn = new Map();

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const short = (value) => {
    const size = Math.abs(value);
    if (size >= 1e9) return +(value / 1e9).toFixed(2) + "G";
    if (size >= 1e6) return +(value / 1e6).toFixed(2) + "M";
    if (size >= 1e4) return +(value / 1e3).toFixed(1) + "k";
    return String(+value.toPrecision(4));
  };

  function draw(element) {
    const chart = data.charts[element.id];
    if (!chart || drawn.has(element)) return;
    const length = Math.max(...chart.lines.map((line) => line.y.length));
    // A point stands at the end of the seconds it tells about.
    const columns = [Array.from({ length }, (_, i) => (i + 1) * chart.per)];
    const series = [{}];
    const bands = [];
    const fill = (values) => (values.length < length ? values.concat(Array(length - values.length).fill(null)) : values);
    const readable = [];
    for (const line of chart.lines) {
      const stroke = colour("--k" + (line.cell % 8));
      if (line.low) {
        bands.push({ series: [series.length, series.length + 1], fill: stroke + "2e" });
        series.push({ stroke: null, width: 0, points: { show: false } }, { stroke: null, width: 0, points: { show: false } });
        columns.push(fill(line.high), fill(line.low));
      }
      readable.push({ index: series.length, stroke });
      series.push({ stroke, width: 1.4, dash: line.cell < 8 ? [] : [6, 3], points: { show: length <= 60, size: 4, fill: stroke } });
      columns.push(fill(line.y));
    }
    const readout = element.parentElement.querySelector(".readout");
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--grid"), width: 1 }, ticks: { stroke: colour("--grid"), width: 1, size: 4 }, font: "11px system-ui, sans-serif" };
    element.textContent = "";
    const plot = new uPlot({
      width: element.clientWidth,
      height: 150,
      legend: { show: false },
      cursor: { sync: { key: chart.group }, points: { size: 6 }, y: false },
      scales: { x: { time: false, range: (_, low, high) => (low === high ? [low - 1, high + 1] : [low, high]) }, y: { range: (_, low, high) => [0, (high || 1) * 1.08] } },
      axes: [{ ...axis, size: 24, values: (_, ticks) => ticks.map((tick) => tick + "s") }, { ...axis, size: 46, values: (_, ticks) => ticks.map(short) }],
      series,
      bands,
      hooks: {
        setCursor: [
          (u) => {
            readout.textContent = "";
            if (u.cursor.idx === null || u.cursor.idx === undefined) return;
            const parts = readable.filter((line) => u.data[line.index][u.cursor.idx] != null);
            const time = document.createElement("span");
            time.textContent = u.data[0][u.cursor.idx] + "s";
            readout.append(time);
            for (const line of parts) {
              const value = document.createElement("b");
              value.style.color = line.stroke;
              value.textContent = short(u.data[line.index][u.cursor.idx]);
              readout.append(" ", value);
            }
          },
        ],
      },
    }, columns, element);
    drawn.set(element, plot);
  }

  // Figures can be saved: as they are on the page, with the styles that they have there.
  const PAINT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-family", "font-size", "font-weight", "font-style", "text-anchor"];
  const SVG = "http://www.w3.org/2000/svg";

  function painted(svg) {
    const copy = svg.cloneNode(true);
    const originals = svg.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((element, i) => {
      const style = getComputedStyle(originals[i]);
      for (const name of PAINT) element.setAttribute(name, style.getPropertyValue(name));
      element.removeAttribute("class");
    });
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    copy.setAttribute("xmlns", SVG);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.removeAttribute("class");
    // Patterns are shared by the whole page.
    const patterns = document.querySelector(".patterns defs");
    if (patterns && copy.querySelector('[fill*="#hatch"]')) copy.prepend(patterns.cloneNode(true));
    const paper = document.createElementNS(SVG, "rect");
    paper.setAttribute("width", width);
    paper.setAttribute("height", height);
    paper.setAttribute("fill", colour("--paper"));
    copy.prepend(paper);
    return { text: new XMLSerializer().serializeToString(copy), width, height };
  }

  // The chart of a canvas once more, in lines.
  function traced(plot) {
    const scale = 2;
    const { left, top, width, height } = plot.over.getBoundingClientRect();
    const outer = plot.root.getBoundingClientRect();
    const at = { x: left - outer.left, y: top - outer.top };
    const parts = [`<rect width="${outer.width}" height="${outer.height}" fill="${colour("--paper")}"/>`];
    const text = (x, y, anchor, words) => parts.push(`<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${colour("--quiet")}" font-family="sans-serif" font-size="11">${words}</text>`);
    const [low, high] = [plot.scales.y.min, plot.scales.y.max];
    for (const share of [0, 0.5, 1]) {
      const y = at.y + height * (1 - share);
      parts.push(`<line x1="${at.x}" x2="${at.x + width}" y1="${y}" y2="${y}" stroke="${colour("--grid")}"/>`);
      text(at.x - 4, y + 4, "end", short(low + share * (high - low)));
    }
    text(at.x, at.y + height + 14, "middle", short(plot.scales.x.min) + "s");
    text(at.x + width, at.y + height + 14, "end", short(plot.scales.x.max) + "s");
    plot.series.forEach((series, i) => {
      if (i === 0 || !series.stroke || !series.width) return;
      const stroke = typeof series.stroke === "function" ? series.stroke(plot, i) : series.stroke;
      let path = "";
      plot.data[i].forEach((value, j) => {
        if (value == null) { path += " "; return; }
        const x = at.x + plot.valToPos(plot.data[0][j], "x");
        const y = at.y + plot.valToPos(value, "y");
        path += (path === "" || path.endsWith(" ") ? "M" : "L") + x.toFixed(scale) + "," + y.toFixed(scale);
      });
      parts.push(`<path d="${path.replaceAll(" ", "")}" fill="none" stroke="${stroke}" stroke-width="1.4"/>`);
    });
    return { text: `<svg xmlns="${SVG}" width="${outer.width}" height="${outer.height}" viewBox="0 0 ${outer.width} ${outer.height}">${parts.join("")}</svg>`, width: outer.width, height: outer.height };
  }

  const address = (text) => "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);

  function hand(href, name) {
    const link = document.createElement("a");
    link.href = href;
    link.download = name;
    link.click();
  }

  function asPng({ text, width, height }, name) {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 2 * width;
      canvas.height = 2 * height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      hand(canvas.toDataURL("image/png"), name);
    };
    image.src = address(text);
  }

  function offerToSave(box, drawing) {
    const words = box.querySelector("figcaption, .charthead b, .charthead strong, .charthead")?.textContent ?? "figure";
    const name = words.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "figure";
    const bar = document.createElement("div");
    bar.className = "save";
    for (const [label, save] of [["SVG", (of) => hand(address(of.text), name + ".svg")], ["PNG", (of) => asPng(of, name + ".png")]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = label;
      button.title = "Save this figure as " + label;
      button.addEventListener("click", () => { const of = drawing(); if (of) save(of); });
      bar.append(button);
    }
    box.append(bar);
  }
  for (const figure of document.querySelectorAll("figure")) {
    const svg = figure.querySelector("svg[viewBox]");
    if (svg) offerToSave(figure, () => painted(svg));
  }
  for (const chart of document.querySelectorAll(".chart")) {
    const place = chart.querySelector(".plot");
    if (place) offerToSave(chart, () => { draw(place); const plot = drawn.get(place); return plot && traced(plot); });
  }

  // The address has what is open, so that a link shows what its sender saw: #verdicts;open=3.7
  const foldable = [...document.querySelectorAll("details")];
  const open = new Set(foldable.flatMap((details, i) => (details.open ? [i] : [])));
  function restore() {
    const [place, state] = location.hash.slice(1).split(";open=");
    for (const i of (state ?? "").split(".")) if (i !== "" && foldable[i]) foldable[i].open = true;
    const target = state !== undefined && place && document.getElementById(decodeURIComponent(place));
    if (target) target.scrollIntoView();
  }
  function keep() {
    const place = location.hash.slice(1).split(";")[0];
    const now = foldable.flatMap((details, i) => (details.open && !open.has(i) ? [i] : []));
    const state = now.length ? ";open=" + now.join(".") : "";
    history.replaceState(null, "", "#" + place + state);
  }
  restore();
  addEventListener("hashchange", () => { if (!location.hash.includes(";")) keep(); });
  foldable.forEach((details) => details.addEventListener("toggle", keep));

  const places = [...document.querySelectorAll(".plot")];
  const watcher = new IntersectionObserver((entries) => entries.forEach((entry) => entry.isIntersecting && draw(entry.target)), { rootMargin: "400px" });
  places.forEach((place) => watcher.observe(place));
  addEventListener("beforeprint", () => places.forEach(draw));
  new ResizeObserver(() => {
    for (const [element, plot] of drawn) {
      if (element.clientWidth && element.clientWidth !== plot.width) plot.setSize({ width: element.clientWidth, height: plot.height });
    }
  }).observe(document.querySelector("main"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    const again = [...drawn.keys()];
    drawn.forEach((plot) => plot.destroy());
    drawn.clear();
    again.forEach(draw);
  });
})();
