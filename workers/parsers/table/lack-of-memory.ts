import { LARGEST_SHARE, type Resources, USUAL_SHARE } from './protocol.ts';

/** The resources of a child that differ between attempts. */
export type AttemptResources = Pick<Resources, 'threads' | 'share'>;

/**
 * `killed` from outside, for instance by the system; `exceeded` its limit; `refused` by DuckDB's own limit; `most`:
 * refused with the most that any attempt gets.
 */
type Kind = 'killed' | 'exceeded' | 'refused' | 'most';

export class LackOfMemory extends Error {
  readonly kind: Kind;
  constructor(kind: Kind) {
    super('the table process lacked memory');
    this.kind = kind;
  }
}

/**
 * What the next attempt gets; undefined if it would fail too. One thread needs a constant amount: of two, under load,
 * DuckDB keeps in memory what one makes while the other waits.
 */
export function afterLackOfMemory(
  kind: Kind,
  { threads, share }: AttemptResources,
): AttemptResources | undefined {
  switch (kind) {
    case 'killed':
      return { threads: 1, share };
    case 'exceeded':
      return threads === 1 && share === USUAL_SHARE
        ? undefined
        : { threads: 1, share: USUAL_SHARE };
    case 'refused':
      return { threads: 1, share: LARGEST_SHARE };
    case 'most':
      return undefined;
  }
}
