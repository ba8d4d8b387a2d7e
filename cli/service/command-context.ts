import type { ProcessLifecycle } from '../../shared/service/lifecycle.ts';

/** The arguments of a command. */
export interface CommandContext {
  life: ProcessLifecycle;
  environment: Record<string, string | undefined>;
  /** A line for each name in the environment that is no setting, and was probably meant for one. */
  misspelt: string[];
}
