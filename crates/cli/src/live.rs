//! The live view of a terminal: the ratios as they come, how far the campaign is, and the step that
//! runs. Lines that stay are above it, as where there is no terminal.

use std::io::stderr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anstream::ColorChoice;
use anstream::adapter::strip_str;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use plimsoll_analysis::{default_view, machine_taken, running_table};
use plimsoll_core::units::format_duration_ns;
use plimsoll_store::{CampaignDir, Store, shell_word};
use rustix::termios::tcgetwinsize;

/// Looking at what there is takes at most this share of the time.
const MOST_OF_TIME: u32 = 50;
/// Lines of the terminal that the table leaves to others.
const OTHER_LINES: usize = 6;

pub struct Live {
    bars: MultiProgress,
    /// From above: the table, what others took of the machine, how far it is, the step that runs.
    lines: Vec<ProgressBar>,
    path: PathBuf,
    table: Vec<String>,
    machine: Option<String>,
    far: String,
    running: String,
    began: Instant,
    /// Trials or starts that have begun since.
    begun: u32,
    next_look: Instant,
}

impl Live {
    /// `None` unless standard error is a terminal that can take lines back.
    pub fn of(campaign: &CampaignDir) -> Option<Self> {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let has_room = tcgetwinsize(stderr()).is_ok_and(|size| size.ws_row > 10);
        (has_room && !is_dumb).then(|| Self {
            bars: MultiProgress::new(),
            lines: Vec::new(),
            path: campaign.path.clone(),
            table: Vec::new(),
            machine: None,
            far: String::new(),
            running: String::new(),
            began: Instant::now(),
            begun: 0,
            next_look: Instant::now(),
        })
    }

    /// A line that stays.
    pub fn print(&self, text: &str) {
        let has_colours = anstream::AutoStream::choice(&stderr()) != ColorChoice::Never;
        let _ = match has_colours {
            true => self.bars.println(text),
            false => self.bars.println(strip_str(text).to_string()),
        };
    }

    /// What runs right now.
    pub fn running(&mut self, text: &str) {
        self.running = text.to_owned();
        match self.lines.last() {
            Some(line) => line.set_message(text.to_owned()),
            None => self.draw(),
        }
    }

    /// Unit `number` of `all` begins, a trial or a start: nothing is measured yet, so there is time
    /// to look at what is done.
    pub fn begins(&mut self, what: &str, number: u32, all: u32) {
        let eta = match self.begun {
            0 => String::new(),
            done => {
                let each = self.began.elapsed() / done;
                let left = each * all.saturating_sub(number - 1);
                format!(", about {} to go", seconds(left))
            }
        };
        self.begun += 1;
        self.far = format!(
            "{what} {number} of {all}, {} so far{eta}",
            seconds(self.began.elapsed())
        );
        self.look();
        self.draw();
    }

    /// Takes the view away.
    pub fn clear(&mut self) {
        for line in self.lines.drain(..) {
            line.finish_and_clear();
        }
        let _ = self.bars.clear();
    }

    fn look(&mut self) {
        let now = Instant::now();
        if now < self.next_look {
            return;
        }
        if let Some((table, machine)) = so_far(&self.path) {
            self.table = table;
            self.machine = machine;
        }
        self.next_look = now + MOST_OF_TIME * now.elapsed();
    }

    fn draw(&mut self) {
        let rows = tcgetwinsize(stderr()).map_or(24, |size| usize::from(size.ws_row));
        let room = rows.saturating_sub(OTHER_LINES).max(3);
        let mut texts: Vec<String> = self.table.iter().take(room).cloned().collect();
        if self.table.len() > room {
            let more = self.table.len() - room;
            let path = shell_word(&self.path.display().to_string());
            texts.push(format!("... and {more} more: plimsoll show {path}"));
        }
        texts.extend(self.machine.clone());
        texts.push(self.far.clone());
        texts.push(self.running.clone());
        while self.lines.len() < texts.len() {
            let line = ProgressBar::no_length().with_style(plain());
            self.lines.push(self.bars.add(line));
        }
        for line in self.lines.drain(texts.len()..) {
            line.finish_and_clear();
            self.bars.remove(&line);
        }
        for (line, text) in self.lines.iter().zip(texts) {
            line.set_message(text);
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

fn plain() -> ProgressStyle {
    ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn seconds(time: Duration) -> String {
    format_duration_ns(time.as_secs() * 1_000_000_000)
}

/// The table and the machine's sentence of what is done; `None` before there is something, or if it
/// cannot be read: the end of the run says why.
fn so_far(path: &Path) -> Option<(Vec<String>, Option<String>)> {
    let campaign = Store::new(path.parent()?).find(path.to_str()).ok()?;
    let view = default_view(&campaign).ok()?;
    Some((running_table(&view), machine_taken(&view)))
}
