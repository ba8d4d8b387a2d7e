import { bigint, customType, text, timestamp } from 'drizzle-orm/pg-core';
import { readTexts, writeTexts } from '../text-arrays.ts';

export const bytea = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });
/** Texts, each as it was stored: drizzle's arrays lose backslashes. */
export const texts = <Text extends string = string>() =>
  customType<{ data: Text[]; driverData: string }>({
    dataType: () => 'text[]',
    toDriver: writeTexts,
    fromDriver: text => readTexts(text) as Text[],
  })();
export const time = () => timestamp({ withTimezone: true, mode: 'date' });
export const count = () => bigint({ mode: 'number' }).notNull().default(0);
/** The user for whom these bytes count; null where that is unknown: for rows of 0.1.0 and of removed users. */
export const storedBy = () => text();
