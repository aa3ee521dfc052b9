/** Settings of the command line. A setting that is not given is undefined. */
export interface ConfigFlags {
  host?: string | undefined;
  port?: string | number | undefined;
  adminHost?: string | undefined;
  adminPort?: string | number | undefined;
  database?: string | undefined;
  tlsCert?: string | undefined;
  tlsKey?: string | undefined;
  adminTlsCert?: string | undefined;
  adminTlsKey?: string | undefined;
  logLevel?: string | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

interface Setting {
  path: readonly [string, ...string[]];
  flag: keyof ConfigFlags;
  flagName: string;
  /** The variable's name after the program's prefix. */
  variable: string;
}

/** Prefix of the variables of `berth serve`. */
const PREFIX = 'BERTH_';

/** Settings that can come from outside the file: flag > environment > file > default. */
const settings: readonly Setting[] = [
  { path: ['server', 'host'], flag: 'host', flagName: '--host', variable: 'HOST' },
  { path: ['server', 'port'], flag: 'port', flagName: '--port', variable: 'PORT' },
  { path: ['server', 'admin', 'host'], flag: 'adminHost', flagName: '--admin-host', variable: 'ADMIN_HOST' },
  { path: ['server', 'admin', 'port'], flag: 'adminPort', flagName: '--admin-port', variable: 'ADMIN_PORT' },
  { path: ['server', 'tls', 'cert'], flag: 'tlsCert', flagName: '--tls-cert', variable: 'TLS_CERT' },
  { path: ['server', 'tls', 'key'], flag: 'tlsKey', flagName: '--tls-key', variable: 'TLS_KEY' },
  {
    path: ['server', 'admin', 'tls', 'cert'],
    flag: 'adminTlsCert',
    flagName: '--admin-tls-cert',
    variable: 'ADMIN_TLS_CERT',
  },
  {
    path: ['server', 'admin', 'tls', 'key'],
    flag: 'adminTlsKey',
    flagName: '--admin-tls-key',
    variable: 'ADMIN_TLS_KEY',
  },
  { path: ['database'], flag: 'database', flagName: '--database', variable: 'DATABASE' },
  { path: ['log_level'], flag: 'logLevel', flagName: '--log-level', variable: 'LOG_LEVEL' },
];

/** A value from outside the file, and the flag or variable that errors name. */
export interface Override {
  path: readonly [string, ...string[]];
  source: 'flag' | 'environment';
  name: string;
  value: unknown;
}

/** The flag that gives the setting at `path`, or undefined. */
export function flagOf(path: readonly PropertyKey[]): string | undefined {
  return settings.find((setting) => setting.path.join('.') === path.join('.'))?.flagName;
}

/** An empty environment variable counts as not set. */
export function readOverrides(flags: ConfigFlags, env: Environment, prefix = PREFIX): Override[] {
  return settings.flatMap(({ path, flag, flagName, variable }): Override[] => {
    const given = flags[flag];
    if (given !== undefined) return [{ path, source: 'flag', name: flagName, value: toValue(path, given) }];
    const name = `${prefix}${variable}`;
    const text = env[name];
    return text ? [{ path, source: 'environment', name, value: toValue(path, text) }] : [];
  });
}

/** Flags and variables are text. A port is converted to a number. */
function toValue(path: readonly string[], given: string | number): unknown {
  return path.at(-1) === 'port' && /^\d+$/.test(String(given)) ? Number(given) : given;
}

/** Applies the overrides to `raw`. A value that should be a mapping and is not is left for the schema to refuse. */
export function applyOverrides(
  raw: Record<string, unknown>,
  overrides: readonly Override[],
): Record<string, unknown> {
  const merged = structuredClone(raw);
  for (const { path, value } of overrides) setAt(merged, path, value);
  return merged;
}

function setAt(target: Record<string, unknown>, [first, ...rest]: readonly string[], value: unknown): void {
  if (first === undefined) return;
  if (rest.length === 0) {
    target[first] = value;
    return;
  }
  const inner = target[first] ?? {};
  target[first] = inner;
  if (typeof inner === 'object' && !Array.isArray(inner))
    setAt(inner as Record<string, unknown>, rest, value);
}
