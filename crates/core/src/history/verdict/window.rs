//! A window of days that moves over the prices of one product and one length of trip.
//!
//! Prices are counted by bin and by their rank among the distinct prices, so that the window moves
//! by single counts, and a verdict is one pass over the ranks.

use super::daily_price::DailyPrice;
use super::formula::{self, Standing};
use super::{
    BINS, CHEAPER_WITHIN_DAYS, JudgedPrice, MIN_PRICES, WINDOW_DAYS, bin_bounds, bin_of, date_of,
};
use crate::contract::history_verdict::{BecameCheaper, HistoryVerdict, PriceClass};

/// The prices before a day. The day only moves forward.
pub(super) struct PriceWindow {
    /// Sorted by day.
    prices: Vec<WindowPrice>,
    /// The distinct prices, ascending.
    ladder: Vec<i64>,
    bins: [BinCounts; BINS.len()],
    all: PriceCounts,
    /// Prices up to here have entered the window …
    entered: usize,
    /// … up to here their next 14 days are over …
    settled: usize,
    /// … and up to here they have left it.
    left: usize,
    /// The day of the window, and what the prices of each bin say on it, once it was asked.
    day: i32,
    on_day: [Option<BinOnDay>; BINS.len()],
}

/// A price of the window.
struct WindowPrice {
    day: i32,
    bin: usize,
    rank: usize,
    /// Whether it became 10 % cheaper; `None` if it was not looked at again in time.
    became_cheaper: Option<bool>,
}

/// Counts of prices by rank.
#[derive(Clone)]
struct PriceCounts {
    by_rank: Vec<u32>,
    total: u32,
}

/// The prices of one bin.
struct BinCounts {
    prices: PriceCounts,
    /// Those whose next 14 days are known, by rank …
    followed: Vec<u32>,
    /// … and those of them that became cheaper.
    cheaper: Vec<u32>,
}

/// What verdicts on all prices of a bin and a day share.
#[derive(Clone)]
struct BinOnDay {
    /// Whether one price alone holds the middle of the bin, so that a cent more or less would change
    /// the class.
    is_flat: bool,
    /// The frequency of each class; `None` if there are too few prices.
    became_cheaper: [Option<BecameCheaper>; PriceClass::ALL.len()],
    /// The first day in the window with a price of the bin.
    since: Option<i32>,
}

/// The standings that make a percentile: in the bin, in it and the bins beside it, and in all.
#[derive(Clone, Copy, Default)]
struct Standings {
    own: Standing,
    near: Standing,
    all: Standing,
}

impl PriceCounts {
    fn new(ranks: usize) -> Self {
        Self {
            by_rank: vec![0; ranks],
            total: 0,
        }
    }

    fn add(&mut self, rank: usize) {
        self.by_rank[rank] += 1;
        self.total += 1;
    }

    fn remove(&mut self, rank: usize) {
        self.by_rank[rank] -= 1;
        self.total -= 1;
    }
}

impl Standings {
    fn percentile(&self) -> f64 {
        formula::percentile(self.own, self.near, self.all)
    }
}

impl PriceWindow {
    /// `prices` are those of one length, sorted by day.
    pub(super) fn new(prices: &[DailyPrice]) -> Self {
        let mut ladder: Vec<_> = prices.iter().map(|price| price.price).collect();
        ladder.sort_unstable();
        ladder.dedup();
        let became_cheaper = became_cheaper(prices);
        let known = prices.iter().zip(became_cheaper);
        let prices = known.filter_map(|(price, became_cheaper)| {
            Some(WindowPrice {
                day: price.day,
                bin: bin_of(price.first_date - price.day)?,
                rank: ladder.partition_point(|known| *known < price.price),
                became_cheaper,
            })
        });
        let counts = PriceCounts::new(ladder.len());
        Self {
            prices: prices.collect(),
            bins: std::array::from_fn(|_| BinCounts {
                prices: counts.clone(),
                followed: vec![0; ladder.len()],
                cheaper: vec![0; ladder.len()],
            }),
            all: counts,
            ladder,
            entered: 0,
            settled: 0,
            left: 0,
            day: i32::MIN,
            on_day: Default::default(),
        }
    }

    /// The verdict on a price without its sentence, by the prices of the days before its own. Days
    /// must not go back.
    pub(super) fn verdict(&mut self, judged: &JudgedPrice) -> HistoryVerdict {
        self.move_to(judged.day);
        let Some(bin) = bin_of(judged.first_date - judged.day) else {
            return without_comparison();
        };
        let standings = self.standings(bin, judged.price);
        let Standing { lower, total, .. } = standings.own;
        let on_day = self.bin_on_day(bin);
        let is_judged = total >= MIN_PRICES && !on_day.is_flat;
        let percentile = is_judged.then(|| standings.percentile());
        let class = percentile.map_or(PriceClass::Insufficient, formula::class);
        HistoryVerdict {
            class,
            percentile,
            n: total,
            lower,
            higher: standings.own.higher(),
            bin: Some(bin_bounds(bin)),
            since: on_day.since.map(date_of),
            sentence: String::new(),
            became_cheaper: on_day.became_cheaper[class as usize].filter(|_| is_judged),
            usual: None,
        }
    }

    fn move_to(&mut self, day: i32) {
        if day == self.day {
            return;
        }
        self.day = day;
        self.on_day = Default::default();
        while let Some(price) = self
            .prices
            .get(self.entered)
            .filter(|price| price.day < day)
        {
            self.bins[price.bin].prices.add(price.rank);
            self.all.add(price.rank);
            self.entered += 1;
        }
        let is_over = |price: &&WindowPrice| price.day + CHEAPER_WITHIN_DAYS < day;
        while let Some(price) = self.prices.get(self.settled).filter(is_over) {
            self.bins[price.bin].follow(price, |count| *count += 1);
            self.settled += 1;
        }
        let is_old = |price: &&WindowPrice| price.day < day - WINDOW_DAYS;
        while let Some(price) = self.prices.get(self.left).filter(is_old) {
            self.bins[price.bin].prices.remove(price.rank);
            self.all.remove(price.rank);
            self.bins[price.bin].follow(price, |count| *count -= 1);
            self.left += 1;
        }
    }

    fn standings(&self, bin: usize, price: i64) -> Standings {
        let rank = self.ladder.partition_point(|known| *known < price);
        let is_known = self.ladder.get(rank) == Some(&price);
        let standing = |counts: &PriceCounts| Standing {
            lower: counts.by_rank[..rank].iter().sum(),
            equal: if is_known { counts.by_rank[rank] } else { 0 },
            total: counts.total,
        };
        Standings {
            own: standing(&self.bins[bin].prices),
            near: self.near(bin).map(|bin| standing(&bin.prices)).fold(
                Standing::default(),
                |sum, one| Standing {
                    lower: sum.lower + one.lower,
                    equal: sum.equal + one.equal,
                    total: sum.total + one.total,
                },
            ),
            all: standing(&self.all),
        }
    }

    /// The bin and those beside it.
    fn near(&self, bin: usize) -> impl Iterator<Item = &BinCounts> {
        self.bins[bin.saturating_sub(1)..(bin + 2).min(BINS.len())].iter()
    }

    /// Calls `visit` with each rank and the standings of its price in the bin, in ascending order.
    fn for_each_rank(&self, bin: usize, mut visit: impl FnMut(usize, &Standings)) {
        let near: Vec<_> = self.near(bin).map(|bin| &bin.prices).collect();
        let mut at = Standings::default();
        at.own.total = self.bins[bin].prices.total;
        at.near.total = near.iter().map(|counts| counts.total).sum();
        at.all.total = self.all.total;
        for rank in 0..self.ladder.len() {
            at.own.equal = self.bins[bin].prices.by_rank[rank];
            at.near.equal = near.iter().map(|counts| counts.by_rank[rank]).sum();
            at.all.equal = self.all.by_rank[rank];
            visit(rank, &at);
            for standing in [&mut at.own, &mut at.near, &mut at.all] {
                standing.lower += standing.equal;
            }
        }
    }

    /// What the prices of the bin say on the day of the window.
    fn bin_on_day(&mut self, bin: usize) -> &BinOnDay {
        let known = self.on_day[bin].take();
        let known = known.unwrap_or_else(|| self.read_bin(bin));
        self.on_day[bin].insert(known)
    }

    fn read_bin(&self, bin: usize) -> BinOnDay {
        let counts = &self.bins[bin];
        let mut is_flat = false;
        let mut followed = [(0, 0); PriceClass::ALL.len()];
        self.for_each_rank(bin, |rank, at| {
            is_flat |= at.own.holds_the_middle();
            if counts.followed[rank] > 0 {
                let (n, count) = &mut followed[formula::class(at.percentile()) as usize];
                *n += counts.followed[rank];
                *count += counts.cheaper[rank];
            }
        });
        let frequency = |(n, count)| (n >= MIN_PRICES).then(|| formula::became_cheaper(count, n));
        BinOnDay {
            is_flat,
            became_cheaper: followed.map(frequency),
            since: self.first_day(bin),
        }
    }

    /// The first day in the window with a price of the bin.
    fn first_day(&self, bin: usize) -> Option<i32> {
        let in_window = &self.prices[self.left..self.entered];
        Some(in_window.iter().find(|price| price.bin == bin)?.day)
    }
}

impl BinCounts {
    /// Changes the counts of the followed prices by one.
    fn follow(&mut self, price: &WindowPrice, change: impl Fn(&mut u32)) {
        if let Some(became_cheaper) = price.became_cheaper {
            change(&mut self.followed[price.rank]);
            if became_cheaper {
                change(&mut self.cheaper[price.rank]);
            }
        }
    }
}

/// For each price, whether one of the same date within 14 days was at least 10 % lower; `None` if
/// there was none to compare with (history.md, rule 39).
fn became_cheaper(prices: &[DailyPrice]) -> Vec<Option<bool>> {
    let mut by_date: Vec<_> = (0..prices.len()).collect();
    by_date.sort_by_key(|index| (prices[*index].first_date, prices[*index].day));
    let mut outcomes = vec![None; prices.len()];
    for (place, index) in by_date.iter().enumerate() {
        let price = prices[*index];
        let later = by_date[place + 1..].iter().map(|index| prices[*index]);
        let in_time = later.take_while(|later| {
            later.first_date == price.first_date && later.day <= price.day + CHEAPER_WITHIN_DAYS
        });
        outcomes[*index] = in_time
            .map(|later| i128::from(later.price) * 10 <= i128::from(price.price) * 9)
            .reduce(|one, other| one || other);
    }
    outcomes
}

/// For a price that was seen after its departure or check-in.
fn without_comparison() -> HistoryVerdict {
    HistoryVerdict {
        class: PriceClass::Insufficient,
        percentile: None,
        n: 0,
        lower: 0,
        higher: 0,
        bin: None,
        since: None,
        sentence: String::new(),
        became_cheaper: None,
        usual: None,
    }
}
