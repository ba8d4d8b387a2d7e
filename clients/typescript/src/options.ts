/** The same members; those that may be left out may be undefined as well, which `exactOptionalPropertyTypes` tells apart. */
export type Options<T> = {
  [K in keyof T]: Partial<Pick<T, K>> extends Pick<T, K> ? T[K] | undefined : T[K];
};
