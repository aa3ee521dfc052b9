import type { z } from 'zod';
import type { Duration } from '../duration.ts';
import type { Arming } from '../faults/arming.ts';
import type { FaultName } from '../faults/catalog/catalog.ts';
import type { Assertion, AssertionResult } from '../journal/assertions.ts';
import type { JournalEntry } from '../journal/entry.ts';
import type { JournalFilter } from '../journal/filter.ts';
import { createOperatorClient, type MarketplaceOperator, type ProviderOperator } from '../operate/client.ts';
import { MARKETPLACE, toProviderName, withoutInfinity } from '../options.ts';
import type { Made } from '../state/run-scenario.ts';
import type { ScenarioInput } from '../state/scenario-format.ts';
import type { Snapshot } from '../state/snapshots.ts';
import type { TransitionSetting } from '../transitions/transitions.ts';
import type { Verdict, VerdictOptions } from '../verdict/verdict.ts';
import type {
  accountSchema,
  armedSchema,
  clockSchema,
  endedSchema,
  faultEventsSchema,
  faultKindsSchema,
  infoSchema,
  mailsSchema,
  newSandboxSchema,
  openedSchema,
  transitionsSchema,
} from './schemas.ts';

/** Path of the control API. Production servers do not have it. */
export const CONTROL = '/control';

/** The path of a server below that of the control API. `name`: the full name of a provider, or `marketplace`. */
export const serverPath = (name: string): string =>
  name === MARKETPLACE ? `/${MARKETPLACE}` : `/providers/${name}`;

type Clock = z.infer<typeof clockSchema>;
type Armed = z.infer<typeof armedSchema>;
type ShownTransitions = z.infer<typeof transitionsSchema>;

/** A request that the control API refused. */
class ControlError extends Error {
  override readonly name = 'ControlError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface ControlClientOptions {
  /** The sandbox's URL, such as `http://127.0.0.1:8100`. */
  baseUrl: string;
  key: string;
  /** Default: the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>;
}

/** The control API of a sandbox, in this process or at an address. Each call rejects with a {@link ControlError}. */
export type SandboxControl = ReturnType<typeof createControlClient>;

export function createControlClient({ baseUrl, key, fetch = globalThis.fetch }: ControlClientOptions) {
  async function send<Reply>(method: string, path: string, body?: unknown): Promise<Reply> {
    const response = await fetch(
      new Request(`${baseUrl}${CONTROL}${path}`, {
        method,
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),
    );
    const reply = await response.json();
    if (response.ok) return reply as Reply;
    throw new ControlError(response.status, (reply as { error: { message: string } }).error.message);
  }
  const post = <Reply>(path: string, body?: unknown) => send<Reply>('POST', path, body);

  /** The client of a server's operator API: of a provider, such as `a` or `provider-a`, or of the `marketplace`. */
  function operator(server: typeof MARKETPLACE): MarketplaceOperator;
  function operator(server: string): ProviderOperator;
  function operator(server: string): MarketplaceOperator | ProviderOperator {
    const base = serverPath(toProviderName(server));
    return createOperatorClient((method, path, body) => send(method, base + path, body));
  }

  return {
    operator,
    info: () => send<z.infer<typeof infoSchema>>('GET', '/info'),
    createAccount: (name?: string) => post<z.infer<typeof accountSchema>>('/accounts', { name }),
    sandboxes: {
      /** Opens a further sandbox below a path of this one. Options that are not given are those of this one. */
      open: (options: z.input<typeof newSandboxSchema> = {}) =>
        post<z.infer<typeof openedSchema>>('/sandboxes', options),
      /** Ends it. Returns the faults that were required to trigger and never did. */
      end: (id: string) =>
        send<z.infer<typeof endedSchema>>('DELETE', `/sandboxes/${encodeURIComponent(id)}`),
    },
    clock: {
      now: () => send<Clock>('GET', '/clock'),
      advance: (by: Duration) => post<Clock>('/clock/advance', { by }),
      advanceUntilIdle: () => post<Clock>('/clock/advance-until-idle'),
      freeze: () => post<Clock>('/clock/freeze'),
      resume: () => post<Clock>('/clock/resume'),
    },
    /** Restores the state at the start. */
    reset: async () => void (await post('/reset')),
    snapshots: {
      take: (name?: string) => post<Snapshot>('/snapshots', { name }),
      restore: (name: string) => post<Snapshot>(`/snapshots/${encodeURIComponent(name)}/restore`),
      list: async () => (await send<{ snapshots: Snapshot[] }>('GET', '/snapshots')).snapshots,
      remove: async (name: string) => void (await send('DELETE', `/snapshots/${encodeURIComponent(name)}`)),
    },
    faults: {
      /** Arms a fault: `arm('http-500', { route: 'POST /instances', times: 3 })`. */
      arm: <N extends FaultName>(fault: N, options?: Arming<N>) =>
        post<Armed>('/faults', { fault, ...withoutInfinity(options ?? {}) }),
      /** Lists the faults that may still trigger, and with `all` also the others. */
      list: async ({ all = false }: { all?: boolean } = {}) =>
        (await send<{ faults: Armed[] }>('GET', `/faults?all=${all}`)).faults,
      events: async () => (await send<z.infer<typeof faultEventsSchema>>('GET', '/faults/events')).events,
      disarm: async (id: string) => void (await send('DELETE', `/faults/${encodeURIComponent(id)}`)),
      /** Disarms all faults. */
      clear: async () => void (await send('DELETE', '/faults')),
      /** Every kind of fault that can be armed. */
      catalog: async () => (await send<z.infer<typeof faultKindsSchema>>('GET', '/faults/catalog')).faults,
    },
    transitions: {
      set: (setting: TransitionSetting) => post<ShownTransitions>('/transitions', setting),
      show: () => send<ShownTransitions>('GET', '/transitions'),
      /** Ends held transitions. Returns their number. */
      finish: async (of: { instance?: string; volume?: string } = {}) =>
        (await post<{ finished: number }>('/transitions/finish', of)).finished,
      clear: async () => void (await send('DELETE', '/transitions')),
    },
    mails: async () => (await send<z.infer<typeof mailsSchema>>('GET', '/mails')).mails,
    /** Plays a scenario. Returns the created resources by name. */
    play: async (scenario: ScenarioInput) =>
      (await post<{ made: Record<string, Made> }>('/scenarios', scenario)).made,
    journal: {
      entries: async (filter: JournalFilter = {}) =>
        (await send<{ entries: JournalEntry[] }>('GET', `/journal${toQuery(filter)}`)).entries,
      clear: async () => void (await send('DELETE', '/journal')),
      /** Checks assertions, and returns the result of each. */
      check: (...assertions: Assertion[]) =>
        post<{ holds: boolean; results: AssertionResult[]; dropped: number }>('/journal/assertions', {
          assertions,
        }),
      /** @throws {Error} with the assertions that do not hold, and why */
      async assert(...assertions: Assertion[]): Promise<void> {
        const { results } = await this.check(...assertions);
        const broken = results.filter(({ holds }) => !holds);
        if (broken.length === 0) return;
        throw new Error(broken.map(({ assert, message }) => `${assert}: ${message}`).join('\n'));
      },
    },
    /** Judges the client by its requests so far. */
    verdict: (options: VerdictOptions = {}) => send<Verdict>('GET', `/verdict${toQuery(options)}`),
  };
}

function toQuery(filter: object): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query}`;
}
