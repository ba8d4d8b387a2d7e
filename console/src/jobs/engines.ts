const NAMES = new Map([['slurm', 'Slurm']]);

/** As people write the name of a batch system. */
export const nameOfEngine = (engine: string): string => NAMES.get(engine) ?? engine;
