import type { Request, Response } from 'express';

/** The link of a request, without its name: takeLink() took it out of the address. */
export const linkOf = (res: Response): string | undefined => res.locals.link;

/** The address as a link is bound to it. A request line may name the whole URL (RFC 9112, 3.2.2). */
export function addressOf({ originalUrl }: Request): { path: string; query: string } {
  const [, path = '', query = ''] =
    /^(?:https?:\/\/[^/?]*)?([^?]*)\??(.*)$/is.exec(originalUrl) ?? [];
  return { path, query };
}
