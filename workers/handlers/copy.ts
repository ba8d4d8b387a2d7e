import { WindlassError } from '../../shared/errors.ts';
import type { Handler } from '../context.ts';

const copy: Handler<'copy'> = async () => {
  throw new WindlassError('internal');
};

export default copy;
