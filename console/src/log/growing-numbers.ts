/** Numbers that are only added at the end: 8 bytes each, whatever their size. */
export class GrowingNumbers {
  #numbers = new Float64Array(64);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(number: number): void {
    if (this.#length === this.#numbers.length) {
      const longer = new Float64Array(2 * this.#length);
      longer.set(this.#numbers);
      this.#numbers = longer;
    }
    this.#numbers[this.#length++] = number;
  }

  at(index: number): number {
    return this.#numbers[index] ?? 0;
  }

  /** The index of the last number that is not greater, of numbers that rise; -1 where all are. */
  lastNotAbove(number: number): number {
    let low = 0;
    let high = this.#length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at(middle) <= number) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
