/** Allows undefined for optional members, too, which `exactOptionalPropertyTypes` would refuse. */
export type Options<T> = {
  [K in keyof T]: Partial<Pick<T, K>> extends Pick<T, K> ? T[K] | undefined : T[K];
};
