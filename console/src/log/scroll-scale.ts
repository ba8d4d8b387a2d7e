/** Chromium ends an element at 33.5 million px, Firefox at 17.9 million. */
const TALLEST = 16_000_000;
/** A larger jump is made by the scrollbar's thumb, not by a wheel or a key. */
const JUMP_PAGES = 3;

export interface Extent {
  lines: number;
  rowHeight: number;
  /** The height of the visible part in px. */
  view: number;
}

/**
 * The scroll position of a log in px of its full height, and the scrollbar's in an element that is lower. Within a few
 * pages scrolling moves the lines by as much as the element; beyond, in proportion.
 */
export class ScrollScale {
  #extent: Extent = { lines: 0, rowHeight: 20, view: 0 };
  #top = 0;
  #scrolled = 0;

  get top(): number {
    return this.#top;
  }

  /** The height of the scrolled element in px. */
  get height(): number {
    return Math.min(TALLEST, this.#full);
  }

  /** Where the element's scrollbar has to be. */
  get scrollTop(): number {
    return this.#scrolled;
  }

  get isAtEnd(): boolean {
    return this.#top >= this.#most - 1;
  }

  get #full(): number {
    return Math.max(this.#extent.view, this.#extent.lines * this.#extent.rowHeight);
  }

  get #most(): number {
    return this.#full - this.#extent.view;
  }

  resize(extent: Extent): void {
    this.#extent = extent;
    this.moveTo(this.#top);
  }

  moveTo(top: number): void {
    this.#top = Math.max(0, Math.min(this.#most, top));
    this.#scrolled = Math.round(this.#top * this.#ratio);
  }

  /** Scrolls a line that is not visible into the middle. */
  showLine(line: number): void {
    const { rowHeight, view } = this.#extent;
    const above = line * rowHeight - this.#top;
    if (above >= 0 && above + rowHeight <= view) return;
    this.moveTo(line * rowHeight - (view - rowHeight) / 2);
  }

  moveToEnd(): void {
    this.moveTo(this.#most);
  }

  /** The user scrolled the element to this position. */
  scrolledTo(scrollTop: number): void {
    const moved = scrollTop - this.#scrolled;
    if (moved === 0) return;
    const isStep = Math.abs(moved) < JUMP_PAGES * this.#extent.view;
    if (this.#ratio === 1 || !isStep) this.moveTo(scrollTop / this.#ratio);
    else this.moveTo(this.#top + moved);
  }

  /** Scrollbar px for a px of the log; 1 where the element is as high as all lines. */
  get #ratio(): number {
    const most = this.#most;
    return most === 0 ? 1 : (this.height - this.#extent.view) / most;
  }
}
