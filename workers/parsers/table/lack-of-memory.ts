import { LARGEST_SHARE, type Resources, USUAL_SHARE } from './protocol.ts';

/** What a child may use that differs between attempts. */
export type AttemptResources = Pick<Resources, 'threads' | 'share'>;

/**
 * killed: from outside, as by a system without memory. exceeded: it took more than it may. refused: DuckDB reached its own
 * limit. most: it did so, and no attempt gives it more.
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
 * What another attempt gets; undefined where it would fail as well. Where the system lets one of two threads wait, as under
 * load, DuckDB keeps in memory what the other makes meanwhile; a single one needs the same always, and less beside its buffers.
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
