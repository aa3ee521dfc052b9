import { onTestFinished } from 'vitest';
import { createAutoClock } from './auto-clock.ts';
import { createReference, type ReferenceSetup } from './create-reference.ts';

type Json = Record<string, unknown>;

interface Called {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: Json;
}

const POLL_MS = 500;
const LIMITS = { timeoutMs: 30_000, maxBodyBytes: 64_000_000 };

/** A create of the cheapest offer. */
export const smallRequest = {
  configuration_id: 'cpu-small',
  region: 'eu-north',
  ssh_keys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJjBEmZs3v5FqBMrGFmwRbJ8gGhbMtEbUXBmmYbyQ0Xp'],
};

export type ReferenceClient = ReturnType<typeof setUp>;

/** Creates a reference and a client for it. Both end with the test. */
export function setUp(setup: Omit<ReferenceSetup, 'clock'> = {}) {
  const clock = createAutoClock();
  const reference = createReference({ clock, ...setup });
  const { options, transport } = reference;
  onTestFinished(() => reference.close());

  async function send(method: string, path: string, headers: Record<string, string>, text?: string) {
    const url = `${options.baseUrl}${path}`;
    const answer = await transport.send(
      { method, url, headers, ...(text !== undefined && { body: text }) },
      LIMITS,
    );
    if ('failure' in answer) throw new Error(answer.message);
    const body: Json = answer.body === '' ? {} : JSON.parse(answer.body);
    return { status: answer.status, headers: answer.headers, body } satisfies Called;
  }

  const bearer = (credential: string) => ({ authorization: `Bearer ${credential}` });
  let credential = options.apiKeys[0] ?? '';

  const call = (method: string, path: string, body?: unknown): Promise<Called> =>
    send(method, path, bearer(credential), body === undefined ? undefined : JSON.stringify(body));

  /** Polls `path` until it has the status. Returns the distinct statuses seen on the way. */
  async function until(path: string, status: string): Promise<{ seen: string[]; body: Json }> {
    const seen: string[] = [];
    for (let polls = 0; polls < 5_000; polls++) {
      const answer = await call('GET', path);
      const now = answer.status === 404 ? 'gone' : String(answer.body['status']);
      if (seen.at(-1) !== now) seen.push(now);
      if (now === status) return { seen, body: answer.body };
      await clock.sleep(POLL_MS);
    }
    throw new Error(`${path} never was ${status}: ${seen.join(', ')}`);
  }

  return {
    clock,
    send,
    call,
    until,
    useCredential: (other: string) => {
      credential = other;
    },
    /** Creates and waits until it is ONLINE. */
    async online(asked: Json = {}): Promise<Json> {
      const { status, body } = await call('POST', '/instances', { ...smallRequest, ...asked });
      if (status !== 201) throw new Error(JSON.stringify(body));
      return (await until(`/instances/${body['id']}`, 'ONLINE')).body;
    },
  };
}
