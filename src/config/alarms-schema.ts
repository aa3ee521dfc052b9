import { z } from 'zod';
import { parseBaseUrl } from '../client/base-url.ts';
import { type Severity, severities } from '../operator-kit/alarms/model.ts';

const text = z.string().min(1).max(1000);

/** The name of the environment variable that has a secret. If it is not set, NAME_FILE has the path of a file with it. */
export const variableSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'expected the name of an environment variable');

export const smtpSchema = z
  .strictObject({
    host: text,
    /** On port 465 TLS begins with the first byte. On others, STARTTLS is used if the server offers it. */
    port: z.int().min(1).max(65_535).default(587),
    user: text.optional(),
    password_env: variableSchema.optional(),
    /** Such as `Marketplace <no-reply@example.com>`. */
    from: text,
  })
  .refine(({ user, password_env }) => (user === undefined) === (password_env === undefined), {
    path: ['user'],
    error: 'expected a user with password_env, or neither',
  });

/** A webhook: its URL, or the source of one that has a secret. */
const hookSchema = z
  .strictObject({
    url: text.optional(),
    url_env: variableSchema.optional(),
    /** Whether the URL may be plain http and resolve to a private address. */
    allow_private: z.boolean().default(false),
  })
  .superRefine(({ url, url_env, allow_private: allowPrivate }, context) => {
    const problem =
      (url === undefined) === (url_env === undefined)
        ? { path: [], message: 'expected one of url and url_env' }
        : { path: ['url'], message: url === undefined ? null : hookProblem(url, allowPrivate) };
    const { path, message } = problem;
    if (message !== null) context.addIssue({ code: 'custom', path, message });
  });

/** Why a webhook must not be called. Null: it may be. The query may hold a token, and is not repeated. */
export function hookProblem(url: string, allowPrivate: boolean): string | null {
  try {
    parseBaseUrl(url.replace(/[?#].*$/s, ''), { allowPrivate });
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

const TARGETS = ['webhook', 'slack', 'email'] as const;

/** Who is told about which alarms. `places` is the name of what alarms concern: platforms, or providers. */
export function alarmsSchema<const Kind extends string, const Places extends string>(
  kinds: readonly [Kind, ...Kind[]],
  places: Places,
) {
  const names = z.array(text).min(1).optional();
  const route = z
    .strictObject({
      name: z
        .string()
        .regex(
          /^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/,
          'expected up to 32 of a-z, 0-9 and "-", such as "on-call"',
        ),
      /** The least severity. */
      severity: z.enum(severities).default('warning'),
      /** By default all. */
      kinds: z.array(z.enum(kinds)).min(1).optional(),
      /** By default all, and also the alarms that concern none. */
      ...({ [places]: names } as Record<Places, typeof names>),
      /** Receives JSON. */
      webhook: hookSchema.optional(),
      /** An incoming webhook of Slack, or of a service that accepts the same. */
      slack: hookSchema.optional(),
      /** Needs `mail`. */
      email: z.strictObject({ to: z.array(z.email()).min(1).max(50) }).optional(),
    })
    .refine(
      (given) => TARGETS.filter((target) => given[target as keyof typeof given] !== undefined).length === 1,
      'expected one of webhook, slack and email',
    );
  return z.strictObject({ routes: z.array(route).max(100).default([]) }).prefault({});
}

type HookEntry = z.infer<typeof hookSchema>;
export interface RouteEntry {
  name: string;
  severity: Severity;
  kinds?: readonly string[] | undefined;
  platforms?: readonly string[] | undefined;
  providers?: readonly string[] | undefined;
  webhook?: HookEntry | undefined;
  slack?: HookEntry | undefined;
  email?: { to: readonly string[] } | undefined;
}
export type SmtpEntry = z.infer<typeof smtpSchema>;

/** The problems between routes, and of those that send mail without a mail server. */
export function routeProblems(
  { routes }: { routes: readonly Pick<RouteEntry, 'name' | 'email'>[] },
  mail: object | undefined,
): { path: (string | number)[]; message: string }[] {
  return routes.flatMap(({ name, email }, index) => [
    ...(routes.findIndex((other) => other.name === name) === index
      ? []
      : [{ path: ['alarms', 'routes', index, 'name'], message: `duplicate name ${name}` }]),
    ...(email === undefined || mail !== undefined
      ? []
      : [
          {
            path: ['alarms', 'routes', index, 'email'],
            message: 'expected a mail server under `mail`: without one, no mail can be sent',
          },
        ]),
  ]);
}
