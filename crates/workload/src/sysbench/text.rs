//! The texts of a row: groups of eleven random digits, 119 characters of them in `c` and 59 in `pad`.

use plimsoll_core::seed::Draw;

const C_GROUPS: usize = 10;
const PAD_GROUPS: usize = 5;
const DIGITS: usize = 11;
/// 10^11: a group is a number below it.
const GROUP_BOUND: u64 = 100_000_000_000;

/// Characters of `c`.
pub(super) const C_LENGTH: usize = C_GROUPS * (DIGITS + 1) - 1;
/// Characters of `pad`.
pub(super) const PAD_LENGTH: usize = PAD_GROUPS * (DIGITS + 1) - 1;

/// Appends a value of `c`.
pub(super) fn push_c(text: &mut String, draw: &mut Draw) {
    push_groups(text, draw, C_GROUPS);
}

/// Appends a value of `pad`.
pub(super) fn push_pad(text: &mut String, draw: &mut Draw) {
    push_groups(text, draw, PAD_GROUPS);
}

fn push_groups(text: &mut String, draw: &mut Draw, groups: usize) {
    for group in 0..groups {
        if group > 0 {
            text.push('-');
        }
        let mut number = draw.below(GROUP_BOUND);
        let mut digits = [b'0'; DIGITS];
        for digit in digits.iter_mut().rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
        text.push_str(std::str::from_utf8(&digits).expect("digits are text"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_groups_of_digits() {
        let mut draw = Draw::new(3, &["text"]);
        let mut digits = [0u32; 10];
        for _ in 0..2000 {
            let (mut c, mut pad) = (String::new(), String::new());
            push_c(&mut c, &mut draw);
            push_pad(&mut pad, &mut draw);
            assert_eq!((c.len(), pad.len(), C_LENGTH, PAD_LENGTH), (119, 59, 119, 59));
            for (text, groups) in [(&c, 10), (&pad, 5)] {
                assert_eq!(text.split('-').map(str::len).collect::<Vec<_>>(), vec![11; groups]);
            }
            c.bytes().filter(|byte| *byte != b'-').for_each(|byte| digits[usize::from(byte - b'0')] += 1);
        }
        // 220,000 digits, 22,000 of each: one standard deviation is 141.
        assert!(digits.iter().all(|count| count.abs_diff(22_000) < 600), "{digits:?}");
    }
}
