import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { checkConfig } from './check.ts';
import { loadConfig } from './load.ts';
import { packageRoot } from './package-root.ts';
import { configSchema } from './schema.ts';

const file = join(packageRoot(), 'examples/berth.yaml');

describe('examples/berth.yaml', () => {
  it('loads, and every value in it is the default', () => {
    const example = loadConfig({ file, flags: {}, env: {} });
    const defaults = loadConfig({ flags: {}, env: {} });
    const inRoot = {
      ...defaults.config,
      database: `sqlite:${join(packageRoot(), 'examples/.berth/berth.db')}`,
    };
    expect(example.config).toEqual(inRoot);
    expect(checkConfig(file)).toEqual([]);
  });

  it('sets every setting that has a default', () => {
    const { sources } = loadConfig({ file, flags: {}, env: {} });
    expect([...sources].filter(([, source]) => source !== 'file')).toEqual([]);
  });

  it('names every key; keys without a default are in a comment', () => {
    const lines = readFileSync(file, 'utf8').split('\n');
    const keys = keysOf(z.toJSONSchema(configSchema, { io: 'input' }));
    expect(keys.length).toBeGreaterThan(30);
    expect(keys).toContain('isolation');
    const absent = keys.filter((key) => !lines.some((line) => new RegExp(`^[ #]*${key}:`).test(line)));
    expect(absent).toEqual([]);
  });
});

function keysOf({ properties = {}, oneOf = [] }: z.core.JSONSchema.BaseSchema): string[] {
  return [
    ...oneOf.flatMap(keysOf),
    ...Object.entries(properties).flatMap(([key, inner]) => [
      key,
      ...(typeof inner === 'boolean' ? [] : keysOf(inner)),
    ]),
  ];
}
