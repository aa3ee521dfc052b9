import { createHash } from 'node:crypto';
import type { Cloud } from './clouds.ts';
import { CloudRefusal } from './errors.ts';

/** The services of a cloud that Berth uses. */
export const services = {
  compute: { types: ['compute'], path: '', microversion: '2.79' },
  network: { types: ['network'], path: '/v2.0', microversion: undefined },
  image: { types: ['image'], path: '/v2', microversion: undefined },
  volume: { types: ['volumev3', 'block-storage', 'block-store', 'volume'], path: '', microversion: '3.44' },
  placement: { types: ['placement'], path: '', microversion: '1.29' },
} as const;
export type Service = keyof typeof services;

/** The token, and what Keystone reports with it. */
export interface Session {
  token: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
  project: { id: string; name: string };
  region: string;
  /** The address of a service. @throws {Error} if the catalog has no such service there */
  urlOf(service: Service): string;
}

interface Endpoint {
  interface: string;
  region?: string;
  region_id?: string;
  url: string;
}
interface TokenBody {
  token?: {
    expires_at?: string;
    project?: { id: string; name: string };
    catalog?: { type: string; endpoints: Endpoint[] }[];
  };
}

/**
 * Reads Keystone's answer to a request for a token.
 *
 * @throws {Error} if it names no project, or the region is not clear
 */
export function toSession(token: string | undefined, body: TokenBody, cloud: Cloud): Session {
  const { project, catalog = [], expires_at: expires } = body.token ?? {};
  if (token === undefined || project === undefined || expires === undefined)
    throw new Error(`${cloud.authUrl} gave a token without a project: the credential belongs to none`);
  if (cloud.project !== undefined && cloud.project !== project.id)
    throw new Error(
      `the credential is one of the project ${project.id}, not of platform.project, ${cloud.project}`,
    );
  const regionOf = (endpoint: Endpoint) => endpoint.region_id ?? endpoint.region ?? '';
  const regions = new Set(catalog.flatMap(({ endpoints }) => endpoints.map(regionOf)));
  const region = cloud.region ?? (regions.size === 1 ? [...regions][0] : undefined);
  if (region === undefined)
    throw new Error(`the cloud has the regions ${[...regions].join(', ')}: name one as platform.region`);
  return {
    token,
    expiresAt: Date.parse(expires),
    project,
    region,
    urlOf(service) {
      const { types, path } = services[service];
      const endpoints = catalog
        .filter(({ type }) => (types as readonly string[]).includes(type))
        .flatMap(({ endpoints }) => endpoints)
        .filter((one) => one.interface === cloud.interface && regionOf(one) === region);
      const [first] = endpoints;
      if (first === undefined)
        throw new CloudRefusal(406, `the region ${region} has no ${cloud.interface} endpoint of ${types[0]}`);
      const url = first.url.replace(/\/+$/, '');
      return path === '' || url.endsWith(path) ? url : `${url}${path}`;
    },
  };
}

/** Whether a version such as `2.79` is in a range, bounds included. */
export function isWithin(version: string, from: string, to: string): boolean {
  const parse = (text: string): number => {
    const [major = 0, minor = 0] = text.split('.').map(Number);
    return major * 10_000 + minor;
  };
  return parse(from) <= parse(version) && parse(version) <= parse(to);
}

/**
 * The name of a zone as a host: the zone, and four bytes that stand for the project and the region. Another project
 * never proves that a machine of this one is gone.
 */
export function toHost(zone: string, { project, region }: Session): string {
  return `${zone}@${createHash('sha256').update(`${region} ${project.id}`).digest('hex').slice(0, 8)}`;
}

export const zoneOf = (host: string): string => host.replace(/@[0-9a-f]{8}$/, '');
