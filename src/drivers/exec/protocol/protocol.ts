import { z } from 'zod';
import * as one from './version-1.ts';
import * as two from './version-2.ts';

/** The protocol versions that this Berth speaks, best first. */
export const PROTOCOL_VERSIONS: readonly number[] = [2, 1];

export const { MAX_TEXT, listedItems } = one;

/** The methods of the newest version. */
export type Method = keyof typeof two.requests;
/** The fields of a request besides its id, method, deadline, claim and order. */
export type Arguments<M extends Method> = Omit<
  z.infer<(typeof two.requests)[M]>,
  'id' | 'method' | 'expires_at' | 'fence' | 'order'
>;
export type Request = { id: string; method: Method; expires_at: number } & Record<string, unknown>;
/** The result of a method. A version 1 answer is a version 2 answer without the new fields. */
export type Result<M extends Method> = z.infer<(typeof two.results)[M]>;
export type Info = Result<'info'>;
export type Capabilities = Info['capabilities'];

export type WireMachineSpec = Arguments<'create'>['spec'];
export type WireVolumeSpec = Arguments<'volumes.create'>['spec'];
export type WireOffer = Arguments<'inventory'>['offers'][number];
export type WireMachine = z.infer<typeof two.listed.list>;
export type WireVolume = z.infer<(typeof two.listed)['volumes.list']>;

/** The schemas of a version's answers. */
export interface Grammar {
  /** An answer to `info`. Capabilities that the version does not have are set to absent. */
  info: z.ZodType<Info>;
  results: Partial<Record<Method, z.ZodType>>;
  /** The item schemas of these methods' listings. */
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

/** An answer to `info` of any version. Parsed first, so that a newer version is not reported as malformed. */
export const anyInfo = z.object({ protocol: z.int() });

/** One line from the driver: the result of a request, or an error text. */
export const answerSchema = z.union([
  z.object({ id: z.string(), result: z.unknown() }).refine((answer) => answer.result !== undefined),
  z.object({ id: z.string(), error: one.text }),
]);
export type Answer = { id: string; result: unknown } | { id: string; error: string };
