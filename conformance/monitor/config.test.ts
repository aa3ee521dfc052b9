import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigError, credentialsOf, readConfig } from './config.ts';

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-monitor-config-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function written(text: string, name = 'monitor.yaml'): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const whole = `
state: state
providers:
  - { name: north, base_url: https://north.test/v1, api_key_env: NORTH_KEY, budget_usd_per_day: 0.5 }
`;

describe('the configuration of the monitor', () => {
  it('has defaults for all but the state and the providers', () => {
    const config = readConfig(written(whole));
    expect(config.machines.least_hours).toBe(2);
    expect(config.rules.length).toBeGreaterThan(0);
  });

  it('is that of the example', () => {
    expect(readConfig('examples/monitor.yaml').providers).toHaveLength(2);
  });

  it.each([
    ['a misspelled field', `${whole}webhok: https://a.test\n`, /the file: .*webhok/],
    ['no budget', whole.replace(', budget_usd_per_day: 0.5', ''), /providers\.0\.budget_usd_per_day/],
    [
      'a key and a file with a key',
      whole.replace('api_key_env', 'api_key_file: k, api_key_env'),
      /either api_key_env/,
    ],
    ['a name that is no path', whole.replace('name: north', 'name: ../north'), /providers\.0\.name: must be/],
    ['an unknown rule', `${whole}rules: [{ revoke_when: never }]\n`, /rules\.0/],
    ['text that is no YAML', 'state: [', /cannot be read as YAML/],
    ['one name twice', `${whole}${whole.split('\n')[3]}\n`, /providers\.1\.name: north is used twice/],
  ])('with %s is refused, and the message says where', (_, text, message) => {
    const path = written(text);
    expect(() => readConfig(path)).toThrow(ConfigError);
    expect(() => readConfig(path)).toThrow(message);
    expect(() => readConfig(path)).toThrow(path);
  });

  it('names the variable that has no key', () => {
    const [provider] = readConfig(written(whole)).providers;
    if (provider === undefined) throw new Error('it has one');
    expect(() => credentialsOf(provider, {})).toThrow(/provider north: NORTH_KEY is not set/);
    expect(credentialsOf(provider, { NORTH_KEY: 'a-key-of-north' })).toEqual({
      baseUrl: 'https://north.test/v1',
      apiKey: 'a-key-of-north',
    });
  });
});
