//! Differential flame graphs, where a campaign holds profiles.

use super::releases::name_of;
use super::tables::file_name;
use super::value::{Figure, Form};
use crate::profiles::Profiled;
use crate::view::View;

/// A graph per step and cell that was profiled beside the base, of the steps in their order. What
/// has no profile, or one that is not to be trusted, has none.
pub(crate) fn of_steps<'a>(
    view: &'a View,
    is_step: impl Fn(&str) -> bool + 'a,
) -> impl Iterator<Item = Figure> + 'a {
    let profiles = view.profiles.iter();
    let drawn = profiles.filter(move |of| {
        is_step(&of.step) && of.reason.is_none() && of.doubt.is_none() && of.tree.cell_us > 0.0
    });
    drawn.map(|of| figure(view, of))
}

fn figure(view: &View, of: &Profiled) -> Figure {
    let name = |label: &String| {
        let cell = view.cells.iter().position(|info| info.label == *label);
        cell.map_or_else(|| label.clone(), |cell| name_of(&view.cells, cell))
    };
    let step = &of.step;
    let (base, cell) = (&name(&of.base_label), &name(&of.cell_label));
    let (old, new) = (of.tree.base_us, of.tree.cell_us);
    let went = of.where_it_went().unwrap_or_default();
    let alt = format!(
        "Server CPU of {step} by function: {new:.2} us/op in {cell}, {old:.2} in {base}. {went}"
    );
    Figure {
        name: file_name(&["flames", step, cell]),
        title: format!("{step}: server CPU by function, {cell} against {base}"),
        caption: format!(
            "{step}: {cell}, base {base}; CPU microseconds per operation, from profiled passes of \
             their own after what was measured."
        ),
        alt: alt.trim_end().to_owned(),
        form: Form::Flames {
            base: base.clone(),
            cell: cell.clone(),
            tree: of.tree.clone(),
        },
    }
}
