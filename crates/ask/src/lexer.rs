//! A text as tokens, with where each stands.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The most digits of a number.
const MAX_DIGITS: usize = 9;

/// A part of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// Its bytes in the text.
    pub(crate) span: Range<usize>,
    /// Whether no blank is before it.
    pub(crate) glued: bool,
    /// Whether it is written in capitals.
    pub(crate) capitals: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    /// Letters, folded ([`fold`]).
    Word(String),
    /// Digits, perhaps with a decimal point; thousands are joined.
    Number(String),
    /// `2027-02`, `2027-02-04`, `2027/02/04`.
    Iso(i16, i8, Option<i8>),
    /// `4.2.` or `4.2.2027`: the day is first wherever dates have dots.
    Dotted(i8, i8, Option<i16>),
    /// `→`, `->`, `>`.
    Arrow,
    /// `-`, `–`, `..`.
    Dash,
    /// `,` and `;`.
    Comma,
    /// Text in quotes, as it stands.
    Quoted(String),
    /// Any other character.
    Sign(char),
}

impl Token {
    /// The folded word.
    pub(crate) fn word(&self) -> Option<&str> {
        match &self.kind {
            TokenKind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// A whole number.
    pub(crate) fn whole(&self) -> Option<u32> {
        match &self.kind {
            TokenKind::Number(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// Letters in lower case without accents; other characters are left out.
pub(crate) fn fold(text: &str) -> String {
    let plain = text.nfkd().filter(|c| !is_combining_mark(*c));
    let mut folded = String::with_capacity(text.len());
    for c in plain.flat_map(char::to_lowercase) {
        match c {
            'ß' => folded.push_str("ss"),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'ø' => folded.push('o'),
            'ł' => folded.push('l'),
            'đ' | 'ð' => folded.push('d'),
            'ı' => folded.push('i'),
            'þ' => folded.push_str("th"),
            _ if c.is_alphanumeric() => folded.push(c),
            _ => {}
        }
    }
    folded
}

/// Whether a word is in a list of words with blanks between them.
pub(crate) fn is_one_of(word: &str, list: &str) -> bool {
    list.split(' ').any(|one| one == word)
}

/// The tokens of a text.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        let before = lexer.at;
        lexer.take_while(char::is_whitespace);
        let start = lexer.at;
        let Some(kind) = lexer.next() else {
            return tokens;
        };
        let span = start..lexer.at;
        let written = &text[span.clone()];
        let capitals =
            written.chars().any(char::is_uppercase) && !written.chars().any(char::is_lowercase);
        tokens.push(Token {
            kind,
            glued: start == before && start > 0,
            capitals,
            span,
        });
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn skip(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        if found {
            self.at += prefix.len();
        }
        found
    }

    fn next(&mut self) -> Option<TokenKind> {
        let first = self.rest().chars().next()?;
        if first.is_ascii_digit() {
            let date = self.iso().or_else(|| self.dotted());
            return Some(date.unwrap_or_else(|| self.number()));
        }
        if first.is_alphabetic() {
            let word =
                self.take_while(|c| c.is_alphabetic() || is_combining_mark(c) || "'’".contains(c));
            return Some(TokenKind::Word(fold(word)));
        }
        if ["→", "->", "==>", "=>", "–>", "—>", "⇒", "➝", ">"]
            .iter()
            .any(|arrow| self.skip(arrow))
        {
            return Some(TokenKind::Arrow);
        }
        if ["..", "-", "–", "—", "‑"]
            .iter()
            .any(|dash| self.skip(dash))
        {
            return Some(TokenKind::Dash);
        }
        self.at += first.len_utf8();
        Some(match first {
            ',' | ';' | '،' => TokenKind::Comma,
            '"' | '“' | '”' | '„' => self.quoted(),
            other => TokenKind::Sign(other),
        })
    }

    fn quoted(&mut self) -> TokenKind {
        let inside = self.take_while(|c| !"\"“”".contains(c));
        if let Some(end) = self.rest().chars().next() {
            self.at += end.len_utf8();
        }
        TokenKind::Quoted(inside.trim().to_owned())
    }

    /// `2027-02` or `2027-02-04`.
    fn iso(&mut self) -> Option<TokenKind> {
        let digits = |from: usize, count: usize| {
            let part = self.rest().get(from..from + count)?;
            part.bytes()
                .all(|byte| byte.is_ascii_digit())
                .then_some(part)
        };
        let first = self.rest().as_bytes().get(4).copied();
        let separator = first.filter(|byte| b"-/".contains(byte));
        let dash =
            |at: usize| separator.is_some() && self.rest().as_bytes().get(at).copied() == separator;
        let ends = |at: usize| !self.rest()[at..].starts_with(|c: char| c.is_alphanumeric());
        let year = digits(0, 4)?.parse().ok()?;
        let month = dash(4).then(|| digits(5, 2))??.parse().ok()?;
        let day = dash(7).then(|| digits(8, 2)).flatten();
        let length = if day.is_some() { 10 } else { 7 };
        if !ends(length) || (day.is_none() && separator == Some(b'/')) {
            return None;
        }
        let day = day.and_then(|day| day.parse().ok());
        self.at += length;
        Some(TokenKind::Iso(year, month, day))
    }

    fn dotted(&mut self) -> Option<TokenKind> {
        let rest = self.rest();
        let (day, rest) = rest.split_once('.')?;
        let (month, rest) = rest.split_once('.')?;
        let small = |text: &str, most: i8| {
            let is_short =
                (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse()
                .ok()
                .filter(|number| is_short && (1..=most).contains(number))
        };
        let (day, month) = (small(day, 31)?, small(month, 12)?);
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let year: Option<i16> = match digits {
            0 => None,
            2 => Some(2_000 + rest[..2].parse::<i16>().ok()?),
            4 => Some(rest[..4].parse().ok()?),
            _ => return None,
        };
        self.at = self.text.len() - rest.len() + digits;
        Some(TokenKind::Dotted(day, month, year))
    }

    fn number(&mut self) -> TokenKind {
        let mut text = self.take_while(|c| c.is_ascii_digit()).to_owned();
        while let Some(group) = self.thousands() {
            text.push_str(group);
        }
        let fraction = self.rest().strip_prefix('.').unwrap_or_default();
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && !text.is_empty() {
            text.push('.');
            text.push_str(&fraction[..digits]);
            self.at += 1 + digits;
        }
        if text.len() > MAX_DIGITS {
            text = "9".repeat(MAX_DIGITS + 1);
        }
        TokenKind::Number(text)
    }

    /// The three digits after a comma or dot of thousands.
    fn thousands(&mut self) -> Option<&'a str> {
        let rest = self.rest().strip_prefix([',', '.'])?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        (digits == 3).then(|| {
            self.at += 4;
            &rest[..3]
        })
    }
}
