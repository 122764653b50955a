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
