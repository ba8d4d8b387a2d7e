import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './shared/database/schema.ts',
  out: './migrations',
  casing: 'snake_case',
});
