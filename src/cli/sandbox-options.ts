import type { SandboxOptions } from '../compose/sandbox/sandbox.ts';
import { parseTimestamp } from '../operator-kit/parse.ts';
import { Fatal } from '../ports/errors.ts';
import type { OutputFlag } from './print-records.ts';

export interface SandboxFlags extends OutputFlag {
  host: string;
  port: string;
  hosts?: string;
  tls?: string;
  scenario?: string;
  providers?: string;
  catalog?: string;
  seed?: string;
  clock?: 'real' | 'virtual';
  startAt?: string;
  timing?: string;
  marketplace?: true;
  creditUsd?: string;
  rateLimits?: 'on' | 'off';
  ssh?: true;
  capacity?: 'unlimited' | 'catalog';
  origin?: string;
  controlKey?: string;
  stopWithStdin?: true;
}

/** The options of these flags, each of the same name. @throws {Fatal} */
export function toOptions(flags: SandboxFlags): SandboxOptions {
  const { catalog, seed, ssh, capacity, origin, controlKey } = flags;
  const { scenario, clock = scenario === undefined ? 'real' : undefined } = flags;
  const given = { catalog, seed, ssh, capacity, origin, control_key: controlKey };
  const values = {
    ...given,
    // A scenario may set another clock.
    clock,
    providers: flags.providers?.split(','),
    start_at: flags.startAt && parseTimestamp('--start-at', flags.startAt),
    timing: flags.timing && toTiming(flags.timing),
    marketplace: toMarketplace(flags),
    rate_limits: flags.rateLimits && flags.rateLimits === 'on',
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/** Splits `phase=least-most,…`. */
function toTiming(text: string): NonNullable<SandboxOptions['timing']> {
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const [phase = '', range = ''] = pair.split('=');
      const [least = '', most = least] = range.split('-');
      return [phase, [least, most]];
    }),
  );
}

function toMarketplace({ marketplace, creditUsd }: SandboxFlags): SandboxOptions['marketplace'] {
  if (creditUsd === undefined) return marketplace;
  if (marketplace === undefined) throw new Fatal('--credit-usd needs --marketplace.');
  return { credit_usd: Number(creditUsd) };
}
