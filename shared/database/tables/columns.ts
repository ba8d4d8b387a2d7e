import { bigint, customType, timestamp } from 'drizzle-orm/pg-core';

export const bytea = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });
export const time = () => timestamp({ withTimezone: true, mode: 'date' });
export const count = () => bigint({ mode: 'number' }).notNull().default(0);
