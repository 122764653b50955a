//! temp
mod common;
#[test]
fn temp() {
    let campaign = common::sample(12);
    let view = plimsoll_report::analyse(&[campaign.load()], &Default::default()).unwrap();
    for step in &view.steps { for o in &step.outcomes { println!("{} {:?} {:?} {:?}", step.name, o.status, o.reason, o.number("ips")); } }
    println!("{:#?}", view.notes);
    for m in &view.steps[4].outcomes[1].measures { println!("{} {:?}", m.metric.name, m.value); }
}
