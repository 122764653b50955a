//! temp
mod common;
#[test]
fn temp() {
    let campaign = common::sample(12);
    let view = plimsoll_report::analyse(&[campaign.load()], &Default::default()).unwrap();
    println!("{}", plimsoll_report::to_terminal(&view, std::env::var("COL").is_ok()));
    println!("{}", plimsoll_report::to_markdown(&view));
    println!("{}", &plimsoll_report::to_csv(&view)[..800]);
    println!("{}", plimsoll_report::to_json(&view).len());
}
