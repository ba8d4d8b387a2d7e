import { WindlassError } from '../../shared/errors.ts';
import type { Handler } from '../context.ts';

const parse: Handler<'parse'> = async () => {
  throw new WindlassError('internal');
};

export default parse;
