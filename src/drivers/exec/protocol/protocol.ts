import { z } from 'zod';
import * as one from './version-1.ts';
import * as two from './version-2.ts';

/** The versions of the protocol that this Berth speaks, the best first. */
export const PROTOCOL_VERSIONS: readonly number[] = [2, 1];

export const { MAX_TEXT, listedItems } = one;

/** The methods of the newest version. */
export type Method = keyof typeof two.requests;
/** What a request carries beside its id, its method, its deadline, and what names the claim and the order that it is of. */
export type Arguments<M extends Method> = Omit<
  z.infer<(typeof two.requests)[M]>,
  'id' | 'method' | 'expires_at' | 'fence' | 'order'
>;
export type Request = { id: string; method: Method; expires_at: number } & Record<string, unknown>;
/** An answer of version 1 is one of version 2 that leaves out what is new. */
export type Result<M extends Method> = z.infer<(typeof two.results)[M]>;
export type Info = Result<'info'>;
export type Capabilities = Info['capabilities'];

export type WireMachineSpec = Arguments<'create'>['spec'];
export type WireVolumeSpec = Arguments<'volumes.create'>['spec'];
export type WireOffer = Arguments<'inventory'>['offers'][number];
export type WireMachine = z.infer<typeof two.listed.list>;
export type WireVolume = z.infer<(typeof two.listed)['volumes.list']>;

/** How the answers of a version are read. */
export interface Grammar {
  /** An answer to `info`, with what a version does not have as what the driver cannot. */
  info: z.ZodType<Info>;
  results: Partial<Record<Method, z.ZodType>>;
  /** What the answers of these methods list. */
  listed: Record<keyof typeof two.listed, z.ZodType>;
  capabilities: readonly string[];
}

const first: Grammar = {
  info: one.results.info.transform((info) => ({
    ...info,
    capabilities: two.capabilities.parse(info.capabilities),
  })),
  results: one.results,
  listed: { list: one.machine, 'volumes.list': one.volume },
  capabilities: Object.keys(one.capabilities.shape),
};
const second: Grammar = {
  info: two.results.info,
  results: two.results,
  listed: two.listed,
  capabilities: Object.keys(two.capabilities.shape),
};

export function grammarOf(version: number): Grammar {
  return version === 1 ? first : second;
}

/** An answer to `info` of any version: read first, so that what is newer is not taken for malformed. */
export const anyInfo = z.object({ protocol: z.int() });

/** One line of the driver: the result of a request, or why the driver could not tell. */
export const answerSchema = z.union([
  z.object({ id: z.string(), result: z.unknown() }).refine((answer) => answer.result !== undefined),
  z.object({ id: z.string(), error: one.text }),
]);
export type Answer = { id: string; result: unknown } | { id: string; error: string };
