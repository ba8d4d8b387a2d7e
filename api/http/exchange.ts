import type { Request, Response } from 'express';

/** A request, and the response to it. */
export interface Exchange {
  req: Request;
  res: Response;
}
