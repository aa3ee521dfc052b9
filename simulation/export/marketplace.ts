import type { MarketFault } from '../marketplace/providers/client.ts';
import type { Translation } from './translation.ts';

/** The sandbox's providers in the place of the simulated ones, and what they sell in the place of their offers. */
const providers: Record<
  string,
  { name: string; regions: Record<string, string>; offers: Record<string, [string, number]> }
> = {
  able: {
    name: 'provider-d',
    regions: { 'eu-one': 'us-phoenix', 'us-two': 'us-phoenix' },
    offers: { gpu: ['d-h100-pcie-1x', 1], spot: ['d-h100-pcie-1x-spot', 1], metal: ['d-h100-sxm-8x', 8] },
  },
  plain: {
    name: 'provider-f',
    regions: { 'eu-one': 'eu-london', 'us-two': 'us-newark' },
    offers: {
      gpu: ['f-h100-sxm-8x-metal', 8],
      spot: ['f-h100-sxm-8x-metal', 8],
      metal: ['f-h100-sxm-8x-metal', 8],
    },
  },
};

/** All of these offers have it. */
const OPERATING_SYSTEM = 'ubuntu-24.04-cuda-13.0';

const faults: Record<MarketFault, string> = {
  refuse: 'connection-refused',
  hang: 'no-answer',
  loseBefore: 'request-lost',
  loseAfter: 'answer-lost',
  late: 'carried-out-late',
  garbage: 'truncated-json',
  fail: 'http-500',
  failAfter: 'http-504',
  unauthorized: 'http-401',
  limited: 'http-429',
  deny: 'false-404',
  twin: 'answer-patch',
};
const routes: Record<string, string> = {
  listConfigurations: 'GET /configurations',
  listAvailability: 'GET /availability',
  listInstances: 'GET /instances',
  getInstance: 'GET /instances/{id}',
  createInstance: 'POST /instances',
  deleteInstance: 'DELETE /instances/{id}',
  startInstance: 'POST /instances/{id}/start',
  stopInstance: 'POST /instances/{id}/stop',
  listVolumes: 'GET /volumes',
  getVolume: 'GET /volumes/{id}',
  createVolume: 'POST /volumes',
  deleteVolume: 'DELETE /volumes/{id}',
  attachVolume: 'POST /volumes/{id}/attach',
  detachVolume: 'POST /volumes/{id}/detach',
};
const machineEvents: Record<string, string> = {
  reclaim: 'spot-reclaim',
  powerOff: 'guest-power-off',
  break: 'machine-breaks',
  vanish: 'machine-lost',
};
const lasting: Record<string, string> = {
  outage: 'connection-refused',
  denial: 'false-404',
  soldOut: 'sold-out',
};
const nameOf = (id: string | undefined): string => providers[id ?? '']?.name ?? 'provider-d';

/** A marketplace on two providers. */
export const marketplace: Translation = {
  sandbox: { providers: ['d', 'f'], marketplace: true },
  begin: [],
  provider: 'marketplace',
  account: (who) => who,
  body({ provider: wanted, offerId, region, gpuCount: _count, ...rest }: Record<string, unknown>) {
    const provider = providers[String(wanted)];
    if (provider === undefined) return rest;
    const to = { ...rest, provider: provider.name, region: provider.regions[String(region)] };
    const [offer, gpuCount] = provider.offers[String(offerId)] ?? [];
    return offer === undefined ? to : { ...to, offerId: offer, gpuCount, operatingSystem: OPERATING_SYSTEM };
  },
  call({ fault, method, provider }) {
    const route = routes[method];
    if (route === undefined) return undefined;
    return {
      fault: faults[fault as MarketFault],
      provider: nameOf(provider),
      account: 'marketplace',
      route,
      times: 1,
    };
  },
  event({ name, provider, forMs }) {
    const fault = lasting[name];
    if (fault !== undefined)
      return { fault, provider: nameOf(provider), account: 'marketplace', times: 'sticky', for_ms: forMs };
    return machineEvents[name] === undefined
      ? undefined
      : { fault: machineEvents[name], provider: nameOf(provider) };
  },
};
