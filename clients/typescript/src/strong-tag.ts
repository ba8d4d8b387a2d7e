/** A compressing proxy makes a tag weak, which If-Match never matches (RFC 9110, 13.1.1). */
export const strongTag = (tag: string | null): string | undefined =>
  tag?.startsWith('"') ? tag : undefined;
