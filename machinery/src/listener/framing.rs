//! Finds HTTP/1 requests whose end two readers could see in different places: two lengths, a length beside chunks, an
//! unknown coding, a folded line. hyper settles some of these quietly; a proxy must not, and nobody honest sends them.
//!
//! What is read is looked at before the HTTP library has it. Nothing is kept but the beginning of one line.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a line that are kept: more than any line that matters has.
const KEPT: usize = 128;
/// The value of [`Verdict::first`] while every request is clear.
const NONE: u64 = u64::MAX;

/// What has been found on a connection, for who answers its requests.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    first: Arc<AtomicU64>,
    answered: Arc<AtomicU64>,
}

impl Verdict {
    fn new() -> Self {
        Self { first: Arc::new(AtomicU64::new(NONE)), answered: Arc::default() }
    }

    /// Whether the request that is answered now is the ambiguous one; asked once for each.
    pub(super) fn refuses_next(&self) -> bool {
        let number = self.answered.fetch_add(1, Ordering::Relaxed);
        number >= self.first.load(Ordering::Relaxed)
    }
}

/// Reads how requests are framed, and only that.
#[derive(Debug)]
pub(super) struct Framing {
    state: State,
    line: Vec<u8>,
    requests: u64,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Head(Head),
    Body(u64),
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailers,
    /// Something was ambiguous: the connection ends with that request.
    Off,
}

#[derive(Clone, Copy, Debug, Default)]
struct Head {
    begun: bool,
    length: Option<u64>,
    chunked: bool,
}

/// The request has no single meaning.
struct Ambiguous;

impl Framing {
    pub(super) fn new() -> (Self, Verdict) {
        let verdict = Verdict::new();
        let framing = Self {
            state: State::Head(Head::default()),
            line: Vec::new(),
            requests: 0,
            verdict: verdict.clone(),
        };
        (framing, verdict)
    }

    /// Takes the next bytes of the connection.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.state {
                State::Off => return,
                State::Body(left) => {
                    let (taken, left) = skip(&mut bytes, left);
                    debug_assert!(taken > 0);
                    self.state = if left == 0 { self.next_request() } else { State::Body(left) };
                }
                State::Chunk(left) => {
                    let (_, left) = skip(&mut bytes, left);
                    self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                }
                State::Head(_) | State::ChunkSize | State::ChunkEnd | State::Trailers => {
                    let end = bytes.iter().position(|byte| *byte == b'\n');
                    let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
                    let room = KEPT.saturating_sub(self.line.len());
                    self.line.extend_from_slice(&part[..part.len().min(room)]);
                    bytes = rest;
                    if end.is_some() {
                        bytes = &bytes[1..];
                        self.end_of_line();
                    }
                }
            }
        }
    }

    fn next_request(&mut self) -> State {
        self.requests += 1;
        State::Head(Head::default())
    }

    fn end_of_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        // A line that may be longer than what is kept is judged as too long where its value matters.
        let whole = line.len() < KEPT;
        let text = line.strip_suffix(b"\r").unwrap_or(&line);
        let next = match self.state {
            State::Head(head) => self.head_line(head, text, whole),
            State::ChunkSize => chunk_size(text, whole),
            State::ChunkEnd if text.is_empty() => Ok(State::ChunkSize),
            State::Trailers if text.is_empty() => Ok(self.next_request()),
            State::Trailers => Ok(State::Trailers),
            _ => Err(Ambiguous),
        };
        self.state = next.unwrap_or_else(|Ambiguous| {
            self.verdict.first.store(self.requests, Ordering::Relaxed);
            State::Off
        });
        line.clear();
        self.line = line;
    }

    fn head_line(&mut self, mut head: Head, line: &[u8], whole: bool) -> Result<State, Ambiguous> {
        if !head.begun {
            // Empty lines before a request are skipped by everybody.
            head.begun = !line.is_empty();
            return Ok(State::Head(head));
        }
        if line.is_empty() {
            return Ok(match head {
                Head { chunked: true, .. } => State::ChunkSize,
                Head { length: Some(length @ 1..), .. } => State::Body(length),
                _ => self.next_request(),
            });
        }
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Err(Ambiguous);
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let name = line[..colon].trim_ascii_end();
        let value = line.get(colon + 1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            if !whole || head.length.is_some() || head.chunked {
                return Err(Ambiguous);
            }
            head.length = Some(decimal(value).ok_or(Ambiguous)?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if !whole || head.length.is_some() || head.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Ambiguous);
            }
            head.chunked = true;
        }
        Ok(State::Head(head))
    }
}

/// Takes up to `left` bytes away; says how many, and how many are left.
fn skip(bytes: &mut &[u8], left: u64) -> (usize, u64) {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
    *bytes = &bytes[taken..];
    (taken, left.saturating_sub(taken as u64))
}

fn chunk_size(line: &[u8], whole: bool) -> Result<State, Ambiguous> {
    let end = line.iter().position(|byte| *byte == b';');
    if end.is_none() && !whole {
        return Err(Ambiguous);
    }
    let digits = line[..end.unwrap_or(line.len())].trim_ascii_end();
    if digits.is_empty() || digits.len() > 16 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(Ambiguous);
    }
    let text = std::str::from_utf8(digits).map_err(|_| Ambiguous)?;
    match u64::from_str_radix(text, 16).map_err(|_| Ambiguous)? {
        0 => Ok(State::Trailers),
        size => Ok(State::Chunk(size)),
    }
}

fn decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// A stream whose requests are looked at as they are read.
pub(super) struct Inspected<S> {
    inner: S,
    framing: Framing,
}

impl<S> Inspected<S> {
    pub(super) fn new(inner: S) -> (Self, Verdict) {
        let (framing, verdict) = Framing::new();
        (Self { inner, framing }, verdict)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Inspected<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        if !matches!(self.framing.state, State::Off) {
            self.framing.feed(&buf.filled()[before..]);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Inspected<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
