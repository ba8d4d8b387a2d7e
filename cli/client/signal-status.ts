export const SIGNALS = ['SIGINT', 'SIGTERM'] as const;
/** 128 and the number of the signal, as shells tell it. */
export const STATUS = { SIGINT: 130, SIGTERM: 143 } as const;
