import { z } from '@hono/zod-openapi';
import { MAX_ADVANCE_MS } from '../clock.ts';

const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration: milliseconds, or text such as `90s`, `1h30m` or `30d`. Parsed to milliseconds. */
export const durationSchema = z
  .union([
    z.number().nonnegative(),
    z
      .string()
      .regex(/^(\d+(\.\d+)?(ms|s|m|h|d))+$/, 'expected a duration such as 500ms, 90s, 1h30m or 30d')
      .transform((text) => [...text.matchAll(/([\d.]+)(ms|s|m|h|d)/g)])
      .transform((parts) =>
        parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (units[unit] ?? 0), 0),
      ),
  ])
  .refine((ms) => ms <= MAX_ADVANCE_MS, 'expected at most 100 years')
  .openapi('Duration', {
    type: ['number', 'string'],
    description: 'Milliseconds, or text such as `90s`, `1h30m` or `30d`.',
    example: '30d',
  });
