import { ApiError, invalidRequest } from '../../contract/errors.ts';
import { Fatal } from '../../ports/errors.ts';
import type { ArmedView } from '../../sandbox/faults/arming.ts';
import type { SandboxOptions } from '../../sandbox/options.ts';
import type { ClientSocket } from '../../sandbox/router.ts';
import { ORIGIN, type Sandbox } from '../../sandbox/sandbox.ts';

/** `socket`: the client's connection. Absent in process. */
export type Ask = (
  input: string | URL | Request,
  init?: RequestInit,
  socket?: ClientSocket,
) => Promise<Response>;

/** A sandbox, and what only the code that serves it needs. */
export interface OpenedSandbox {
  sandbox: Sandbox;
  ask: Ask;
  /** Closes it. Returns the faults that were required to trigger and never did. */
  end(): Promise<ArmedView[]>;
}

const INNER = /^(\/sandboxes\/[^/]+)(\/.*)$/;

/** Further sandboxes in one that is served: each has its own servers, clock and faults, below a path of its own. */
export class Sandboxes {
  readonly #open: (given: SandboxOptions, path: string) => Promise<OpenedSandbox>;
  /** By their paths. */
  readonly #all = new Map<string, OpenedSandbox>();
  #made = 0;

  /** `open` opens one that answers below `path`. */
  constructor(open: (given: SandboxOptions, path: string) => Promise<OpenedSandbox>) {
    this.#open = open;
  }

  /** @throws {ApiError} if the options are invalid */
  async add(given: SandboxOptions): Promise<{ id: string; path: string; sandbox: Sandbox }> {
    const id = `sandbox-${++this.#made}`;
    const path = toPath(id);
    const opened = await this.#open(given, path).catch((error: unknown) => {
      throw error instanceof Fatal ? invalidRequest([{ path: '', message: error.message }]) : error;
    });
    this.#all.set(path, opened);
    return { id, path, sandbox: opened.sandbox };
  }

  /** Returns the faults that were required to trigger and never did. @throws {ApiError} if there is no sandbox of that id */
  async end(id: string): Promise<ArmedView[]> {
    const opened = this.#all.get(toPath(id));
    if (opened === undefined) throw new ApiError('not_found', `There is no sandbox ${id}.`);
    this.#all.delete(toPath(id));
    return opened.end();
  }

  async endAll(): Promise<void> {
    await Promise.all([...this.#all.values()].map((opened) => opened.end()));
    this.#all.clear();
  }

  /** Returns what answers the request, and the request with that sandbox's own path. Undefined for any other path. */
  find(request: Request): { ask: Ask; request: Request } | undefined {
    const { pathname, search } = new URL(request.url);
    const [, path = '', rest] = INNER.exec(pathname) ?? [];
    const opened = this.#all.get(path);
    return opened && { ask: opened.ask, request: new Request(`${ORIGIN}${rest}${search}`, request) };
  }
}

const toPath = (id: string): string => `/sandboxes/${id}`;
