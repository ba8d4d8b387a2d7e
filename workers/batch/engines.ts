import type { Engine } from './engine.ts';
import { slurm } from './slurm.ts';

export const ENGINE = { slurm } as const satisfies Record<string, Engine>;
