import { WindlassError } from '../../shared/errors.ts';
import type { Handler } from '../context.ts';

const view: Handler<'view'> = async () => {
  throw new WindlassError('internal');
};

export default view;
