import type { Method } from '../../src/platform-model/platform.ts';
import type { Fault } from '../orchestrator/platform/call-faults.ts';
import type { Translation } from './translation.ts';

const PROVIDER = 'provider-d';

/** What the sandbox's provider sells in the place of what the simulated one does, and how much there is of it. */
const offers: Record<string, { id: string; regions: Record<string, string>; units: Record<string, number> }> =
  {
    cpu: {
      id: 'd-cpu-64x256',
      regions: { 'eu-north': 'us-phoenix', 'eu-south': 'us-phoenix' },
      units: { 'us-phoenix': 7 },
    },
    gpu: {
      id: 'd-h100-sxm-8x',
      regions: { 'eu-north': 'eu-helsinki', 'eu-south': 'us-phoenix' },
      units: { 'us-phoenix': 1 },
    },
    spot: {
      id: 'd-h100-pcie-1x-spot',
      regions: { 'eu-north': 'us-phoenix', 'eu-south': 'us-phoenix' },
      units: { 'us-phoenix': 4 },
    },
    metal: { id: 'd-b200-sxm-8x', regions: { 'eu-south': 'eu-helsinki' }, units: {} },
  };
const regions: Record<string, string> = { 'eu-north': 'eu-helsinki', 'eu-south': 'us-phoenix' };

const looks: readonly Method[] = ['get', 'list', 'volumes.get', 'volumes.list'];
const orders: Partial<Record<Fault, string>> = {
  before: 'platform-call-lost',
  after: 'platform-answer-lost',
  mute: 'platform-answer-lost',
  hang: 'platform-hangs',
  slow: 'platform-slow',
  refused: 'platform-locked',
  auth: 'platform-unauthorized',
  'no-capacity': 'no-capacity',
};
const answers: Partial<Record<Fault, string>> = {
  ...{
    before: 'platform-unknown',
    after: 'platform-unknown',
    mute: 'platform-unknown',
    hang: 'platform-unknown',
  },
  ...{ unknown: 'platform-unknown', slow: 'platform-slow' },
  ...{ empty: 'platform-empty-list', partial: 'platform-partial-list' },
};
const machineEvents: Record<string, string> = {
  reclaim: 'spot-reclaim',
  reap: 'stopped-reaped',
  powerOff: 'guest-power-off',
  suspend: 'machine-paused',
  breakDown: 'machine-breaks',
  loss: 'machine-lost',
};
const lasting: Record<string, string> = {
  outage: 'platform-outage',
  revokedCredential: 'credential-revoked',
};

/** Orchestrators, as a sandbox with one provider can repeat them. */
export const orchestrator: Translation = {
  sandbox: { providers: ['d'], capacity: 'catalog' },
  begin: Object.values(offers).flatMap(({ id, units }) =>
    Object.entries(units).map(([region, leave]) => ({
      do: 'sell_out' as const,
      provider: PROVIDER,
      configuration_id: id,
      region,
      leave,
    })),
  ),
  provider: PROVIDER,
  account: (who) => who,
  body({ configuration_id: wanted, region, type: _type, ...rest }: Record<string, unknown>) {
    if (wanted === undefined)
      return region === undefined ? rest : { ...rest, region: regions[String(region)] };
    const offer = offers[String(wanted)];
    return { ...rest, configuration_id: offer?.id, region: offer?.regions[String(region)] };
  },
  call({ fault, method }) {
    // These last, and begin with an event of their own.
    if (fault === 'outage' || fault === 'revoked') return 'nothing';
    if (fault === 'idle' && method.endsWith('destroy')) return { fault: 'destroy-lies', route: method };
    const name = (looks.includes(method as Method) ? answers : orders)[fault as Fault];
    if (name === undefined || method === 'inventory') return undefined;
    return { fault: name, route: method, times: 1 };
  },
  event({ name, forMs }) {
    const fault = lasting[name];
    if (fault !== undefined)
      return { fault, provider: PROVIDER, times: 'sticky', for_ms: Math.round(forMs ?? 0) };
    return machineEvents[name] === undefined ? undefined : { fault: machineEvents[name], provider: PROVIDER };
  },
};
