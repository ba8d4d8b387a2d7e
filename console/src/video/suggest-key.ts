/** A key for a video that is made now. It has the time: under the key of another one it would take that one's place. */
export function suggestKey(words: string, now: Date): string {
  const clean = words
    .replace(/[^\w.-]+/g, '-')
    .replace(/^[_.-]+|[_.-]+$/g, '')
    .slice(-100);
  const [day, time = ''] = now.toISOString().split(/[T.]/);
  return `${clean || 'video'}-${day}-${time.replaceAll(':', '')}`;
}
