import type { OpenAPIHono, z } from '@hono/zod-openapi';
import { invalidRequest } from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { bearer, jsonContent, newRouter } from '../../http/api/create-app.ts';
import type { RequestEnv } from '../../http/api/request-context.ts';
import { errors } from '../../orchestrator/http/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { SandboxClock } from '../clock.ts';
import type { ArmedView } from '../faults/arming.ts';
import type { Faults } from '../faults/faults.ts';
import type { Journal } from '../journal/journal.ts';
import type { SandboxOptions } from '../options.ts';
import type { SandboxProvider } from '../provider.ts';
import type { ScenarioTarget } from '../state/run-scenario.ts';
import type { Snapshots } from '../state/snapshots.ts';
import type { Transitions } from '../transitions/transitions.ts';

interface Access {
  baseUrl: string;
  apiKey: string;
}

/** An account of every provider, and of the marketplace if there is one. */
export interface ControlledAccount {
  readonly name: string;
  readonly providers: Readonly<Record<string, Access>>;
  readonly marketplace?: Access & {
    readonly email: string;
    readonly userId: string;
    readonly teamId: string;
  };
}

export interface ControlDeps {
  /** The bearer token that its requests must carry. */
  key: string;
  sandbox: {
    readonly seed: string;
    readonly clock: SandboxClock;
    readonly providers: ReadonlyMap<string, SandboxProvider>;
    readonly faults: Faults;
    readonly transitions: Transitions;
    /** The marketplace's sent mails. */
    readonly mails: readonly { at: number; to: string; subject: string; text: string }[];
    readonly defaultAccount: ControlledAccount;
    account(name?: string): Promise<ControlledAccount>;
  };
  /** The certificate of the CA, in PEM, if the sandbox is served over TLS. */
  ca(): Promise<string | undefined>;
  /** Where this control API answers. */
  controlOrigin(): string;
  /** Further sandboxes, which answer below a path of this one. */
  sandboxes: {
    add(options: SandboxOptions): Promise<{
      id: string;
      path: string;
      sandbox: Pick<ControlDeps['sandbox'], 'seed' | 'defaultAccount'>;
    }>;
    /** Returns its faults that had to strike and did not. @throws {ApiError} if there is none of that id */
    end(id: string): Promise<ArmedView[]>;
  };
  keys(): readonly { account: string; provider: string }[];
  journal: Journal;
  snapshots: Snapshots;
  scenarios: ScenarioTarget;
  /**
   * Sends a request to the operator API of a provider or the `marketplace`, with its own path. @throws {ApiError} if there is
   * no such server
   */
  operate(server: string, path: string, request: Request): Promise<Response>;
  log: Log;
}

/** Creates a router that answers invalid input with a 400 that names each path, like the providers. */
export function createRouter(): OpenAPIHono<RequestEnv> {
  return newRouter<RequestEnv>((failed) => invalidRequest(toIssues(failed)));
}

/** Returns the method and path of a route, and the tag under which the document lists it. */
export function on<Method extends 'get' | 'post' | 'delete', Path extends string>(
  tag: string,
  method: Method,
  path: Path,
) {
  return { tags: [tag], security: bearer, method, path };
}

export function bodyOf<S extends z.ZodType, Required extends boolean = true>(
  schema: S,
  example: object,
  { required = true as Required }: { required?: Required } = {},
) {
  return { body: { required, content: jsonContent(schema, example) } };
}

export const invalidBody = ['unauthorized', ...errors.ofBodies] as const;

export function toArmed({ isOver, ...armed }: ArmedView) {
  return { ...armed, is_over: isOver };
}
