/** Thrown by a handler that releases its job: another worker goes on with it, after so many seconds. */
export class ReleaseJob extends Error {
  readonly forSeconds: number;

  constructor(why: string, forSeconds = 0) {
    super(why);
    this.name = 'ReleaseJob';
    this.forSeconds = forSeconds;
  }
}
