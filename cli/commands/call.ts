import type { ProcessLife } from '../../shared/process.ts';

/** What main.ts hands to a command. */
export interface CommandCall {
  life: ProcessLife;
  environment: Record<string, string | undefined>;
}
