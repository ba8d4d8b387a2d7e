import { drawLine } from './draw-line.ts';
import type { OutputLog } from './output-log.ts';
import { ScrollScale } from './scroll-scale.ts';

interface Row {
  element: HTMLElement;
  number: HTMLAnchorElement;
  text: HTMLElement;
  /** What the row shows; the row is drawn again where that changes. */
  shows: string;
}

/** The longest that browsers take for a scroll. */
const HELD_MS = 1_000;
/** What users scroll by. */
const RELEASES = ['keydown', 'pointerdown', 'wheel'];

export interface LogViewOptions {
  following: boolean;
  /** The user scrolled away from the end, or back to it. */
  onFollow: (following: boolean) => void;
  /** A line number was clicked. */
  onPick: (line: number) => void;
}

/**
 * The visible lines of a log as elements: some fifty, however long it is. They stand still in a scrolling element, and
 * are drawn at most once a frame.
 */
export class LogView {
  readonly #scroller: HTMLElement;
  readonly #rowsBox: HTMLElement;
  readonly #sizer: HTMLElement;
  readonly #log: OutputLog;
  readonly #options: LogViewOptions;
  readonly #scale = new ScrollScale();
  readonly #rows: Row[] = [];
  readonly #observer: ResizeObserver;
  #frame = 0;
  /**
   * performance.now() until which, after a jump to an end, the rest of an earlier scroll is undone. The user's next one is not.
   */
  #heldUntil = 0;
  #rowHeight = 20;
  /** The height of the visible part in px. */
  #view = 0;
  #following: boolean;
  #wraps = false;
  #query = '';
  #picked: number | undefined;
  /** Changes with anything that all rows depend on. */
  #version = 0;
  /** Lines that were open when rows were drawn last: they may have grown. */
  #open: number[] = [];

  constructor(scroller: HTMLElement, log: OutputLog, options: LogViewOptions) {
    this.#scroller = scroller;
    this.#log = log;
    this.#options = options;
    this.#following = options.following;
    this.#rowsBox = document.createElement('div');
    const still = document.createElement('div');
    still.className = 'log-rows';
    still.append(this.#rowsBox);
    this.#sizer = document.createElement('div');
    scroller.replaceChildren(still, this.#sizer);
    scroller.addEventListener('scroll', this.#onScroll, { passive: true });
    scroller.addEventListener('click', this.#onClick);
    for (const type of RELEASES) scroller.addEventListener(type, this.#release, { passive: true });
    scroller.addEventListener('keydown', this.#onKey);
    this.#observer = new ResizeObserver(() => this.refresh());
    this.#observer.observe(scroller);
  }

  destroy(): void {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    this.#scroller.removeEventListener('scroll', this.#onScroll);
    this.#scroller.removeEventListener('click', this.#onClick);
    for (const type of RELEASES) this.#scroller.removeEventListener(type, this.#release);
    this.#scroller.removeEventListener('keydown', this.#onKey);
  }

  /** Draws in the next frame. */
  refresh(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(this.#draw);
  }

  setFollowing(following: boolean): void {
    this.#following = following;
    this.refresh();
  }

  setWraps(wraps: boolean): void {
    this.#wraps = wraps;
    this.#scroller.dataset.wraps = String(wraps);
    this.refresh();
  }

  /** Marks a text wherever it is seen. */
  setQuery(query: string): void {
    this.#query = query;
    this.#version++;
    this.refresh();
  }

  /** Marks a line. */
  pick(line: number | undefined): void {
    this.#picked = line;
    this.#version++;
    this.refresh();
  }

  /** Scrolls a line into view. */
  showLine(line: number): void {
    this.#measure();
    this.#scale.showLine(line);
    this.#leaveEnd();
    this.#moveScrollbar();
    this.refresh();
  }

  #leaveEnd(): void {
    if (!this.#following) return;
    this.#following = false;
    this.#options.onFollow(false);
  }

  readonly #onScroll = () => {
    const { scrollTop } = this.#scroller;
    if (Math.abs(scrollTop - this.#scale.scrollTop) < 1) return;
    if (performance.now() < this.#heldUntil) return this.#moveScrollbar();
    this.#scale.scrolledTo(scrollTop);
    if (this.#scale.isAtEnd !== this.#following) {
      this.#following = this.#scale.isAtEnd;
      this.#options.onFollow(this.#following);
    }
    this.refresh();
  };

  readonly #release = () => {
    this.#heldUntil = 0;
  };

  /** Goes to an end at once: browsers go there in many steps, and small last ones would end a few lines before it. */
  readonly #onKey = (event: KeyboardEvent) => {
    if (event.target !== this.#scroller || (event.key !== 'Home' && event.key !== 'End')) return;
    event.preventDefault();
    this.#measure();
    if (event.key === 'Home') this.#scale.moveTo(0);
    else this.#scale.moveToEnd();
    this.#following = this.#scale.isAtEnd;
    this.#options.onFollow(this.#following);
    this.#heldUntil = performance.now() + HELD_MS;
    this.#moveScrollbar();
    this.refresh();
  };

  readonly #onClick = (event: MouseEvent) => {
    const number = (event.target as Element).closest<HTMLElement>('.log-number');
    if (!number || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.#options.onPick(Number(number.dataset.line));
  };

  #measure(): void {
    this.#rowHeight = Number.parseFloat(getComputedStyle(this.#scroller).lineHeight) || 20;
    this.#view = this.#scroller.clientHeight;
    const lines = this.#log.lineCount;
    this.#scale.resize({ lines, rowHeight: this.#rowHeight, view: this.#view });
    this.#sizer.style.height = `${Math.max(0, this.#scale.height - this.#view)}px`;
  }

  #moveScrollbar(): void {
    if (Math.abs(this.#scroller.scrollTop - this.#scale.scrollTop) >= 1)
      this.#scroller.scrollTop = this.#scale.scrollTop;
  }

  readonly #draw = () => {
    this.#frame = 0;
    this.#measure();
    if (this.#following) this.#scale.moveToEnd();
    const view = this.#view;
    const { lineCount } = this.#log;
    const first = Math.floor(this.#scale.top / this.#rowHeight);
    const count = Math.min(Math.ceil(view / this.#rowHeight) + 1, lineCount - first);
    this.#scroller.style.setProperty('--digits', String(Math.max(3, `${lineCount}`.length)));
    this.#fitRows(Math.max(0, count));
    for (const [i, row] of this.#rows.entries()) this.#drawRow(row, first + i);
    this.#open = this.#log.openLines;
    this.#rowsBox.style.transform = `translateY(${this.#offset(first, view)}px)`;
    this.#moveScrollbar();
  };

  /** How far the rows begin above what is seen. Where lines wrap, the last one stands at the bottom at the end. */
  #offset(first: number, view: number): number {
    const into = this.#scale.top / this.#rowHeight - first;
    const [top] = this.#rows;
    if (!this.#wraps || !top) return -into * this.#rowHeight;
    const last = this.#rows.at(-1)?.element;
    const height = last ? last.offsetTop + last.offsetHeight : 0;
    if (this.#scale.isAtEnd) return Math.min(0, view - height);
    return -into * top.element.offsetHeight;
  }

  #fitRows(count: number): void {
    while (this.#rows.length < count) {
      const row = makeRow();
      this.#rows.push(row);
      this.#rowsBox.append(row.element);
    }
    for (const row of this.#rows.splice(count)) row.element.remove();
  }

  #drawRow(row: Row, n: number): void {
    const shows = `${n} ${this.#version}`;
    if (row.shows === shows && !this.#open.includes(n)) return;
    const line = this.#log.line(n);
    row.shows = line ? shows : '';
    row.number.textContent = String(n + 1);
    row.number.dataset.line = String(n);
    row.number.href = addressOf(n);
    row.number.title = describeTime(this.#log.timeOf(n));
    row.element.dataset.stream = line?.stream ?? '';
    row.element.dataset.picked = String(n === this.#picked);
    // A stop for each line would be a long way past the log; the marked one can be followed, and copied.
    row.number.tabIndex = n === this.#picked ? 0 : -1;
    row.number.ariaLabel = `Line ${n + 1}`;
    if (line) drawLine(row.text, line, this.#query);
    else row.text.textContent = 'Reading …';
  }
}

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const describeTime = (time: number | undefined) => (time === undefined ? '' : exact.format(time));

/** The address of this page with the line. */
function addressOf(line: number): string {
  const search = new URLSearchParams(location.search);
  search.set('line', String(line + 1));
  return `${location.pathname}?${search}`;
}

function makeRow(): Row {
  const make = <Name extends 'div' | 'a'>(name: Name, className: string) =>
    Object.assign(document.createElement(name), { className });
  const element = make('div', 'log-row');
  const number = make('a', 'log-number');
  const text = make('div', 'log-text');
  element.append(number, text);
  return { element, number, text, shows: '' };
}
