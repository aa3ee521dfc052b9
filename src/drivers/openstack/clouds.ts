import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { Fatal } from '../../ports/errors.ts';
import type { OpenStackConfig } from './options.ts';

/** The address of a cloud, and Berth's credential. */
export interface Cloud {
  /** Of Keystone, ending with `/v3`. */
  authUrl: string;
  /** The body of the request for a token. It holds the secret. */
  auth: object;
  /** Id of the project that the credential must be one of. Undefined for any. */
  project: string | undefined;
  /** Undefined if the catalog has only one region. */
  region: string | undefined;
  interface: string;
  /** PEM of the authorities to trust instead of Node's. */
  ca: string | undefined;
  verify: boolean;
  /** The file that names the cloud, and whether others than its owner may read it. */
  file: string;
  isReadableByOthers: boolean;
}

const text = z.coerce.string().min(1);
const authSchema = z.object({
  auth_url: text,
  application_credential_id: text.optional(),
  application_credential_name: text.optional(),
  application_credential_secret: text.optional(),
  username: text.optional(),
  user_id: text.optional(),
  password: text.optional(),
  project_name: text.optional(),
  project_id: text.optional(),
  user_domain_name: text.optional(),
  user_domain_id: text.optional(),
  project_domain_name: text.optional(),
  project_domain_id: text.optional(),
});
const cloudSchema = z.object({
  auth: authSchema,
  region_name: text.optional(),
  interface: z.enum(['public', 'internal', 'admin']).default('public'),
  cacert: text.optional(),
  verify: z.boolean().default(true),
});
const cloudsSchema = z.object({ clouds: z.record(z.string(), z.record(z.string(), z.unknown())) });

/**
 * Reads the entry of clouds.yaml, with the secrets that `secure.yaml` beside it adds.
 *
 * @throws {Fatal} with a message for the operator, which holds no value of the file
 */
export function readCloud(
  {
    cloud: name,
    clouds_file: given,
    project,
    region,
  }: Pick<OpenStackConfig, 'cloud' | 'clouds_file' | 'project' | 'region'>,
  env: Readonly<Record<string, string | undefined>>,
): Cloud {
  const usual = [
    env['OS_CLIENT_CONFIG_FILE'],
    env['HOME'] && join(env['HOME'], '.config/openstack/clouds.yaml'),
  ];
  const candidates =
    given === undefined ? [...usual, '/etc/openstack/clouds.yaml'].filter((one) => !!one) : [given];
  const file = candidates.find((one) => statSync(one as string, { throwIfNoEntry: false }) !== undefined);
  if (file === undefined) throw new Fatal(`platform.cloud: there is no ${candidates.join(' and no ')}.`);
  const entry = readClouds(file)[name];
  if (entry === undefined) throw new Fatal(`platform.cloud: ${file} has no cloud ${name}.`);
  const secureFile = join(file, '../secure.yaml');
  const secure = statSync(secureFile, { throwIfNoEntry: false }) ? readClouds(secureFile)[name] : undefined;
  const merged = {
    ...entry,
    ...secure,
    auth: { ...(entry['auth'] as object), ...(secure?.['auth'] as object) },
  };
  const parsed = cloudSchema.safeParse(merged);
  if (!parsed.success) {
    const where = parsed.error.issues.map(({ path }) => path.join('.')).join(', ');
    throw new Fatal(`platform.cloud: the cloud ${name} in ${file} lacks or misstates ${where}.`);
  }
  const { auth, region_name: own, interface: kind, cacert, verify } = parsed.data;
  return {
    authUrl: `${auth.auth_url.replace(/\/+$/, '').replace(/\/v3$/, '')}/v3`,
    auth: toAuth(auth, `the cloud ${name} in ${file}`),
    project,
    region: region ?? own,
    interface: kind,
    ca: cacert === undefined ? undefined : readText(cacert),
    verify,
    file,
    isReadableByOthers: (statSync(file).mode & 0o077) !== 0,
  };
}

function readClouds(file: string): Record<string, Record<string, unknown>> {
  const contents = readText(file);
  let value: unknown;
  try {
    value = parse(contents);
  } catch {
    // The parser's message shows the line, which may hold a secret.
    throw new Fatal(`platform.cloud: ${file} is not valid YAML.`);
  }
  const { success, data } = cloudsSchema.safeParse(value);
  if (!success) throw new Fatal(`platform.cloud: ${file} has no clouds.`);
  return data.clouds;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Fatal(`platform.cloud: ${file} cannot be read (${(error as Error).message}).`, {
      cause: error,
    });
  }
}

function toAuth(auth: z.infer<typeof authSchema>, where: string): object {
  const user = identified(auth.user_id, auth.username, auth.user_domain_id, auth.user_domain_name);
  const { application_credential_id: id, application_credential_name: name } = auth;
  const { application_credential_secret: secret, password } = auth;
  if (secret !== undefined && (id !== undefined || (name !== undefined && user))) {
    const credential = id === undefined ? { name, user, secret } : { id, secret };
    return { identity: { methods: ['application_credential'], application_credential: credential } };
  }
  const { project_id, project_name, project_domain_id, project_domain_name } = auth;
  const project = identified(project_id, project_name, project_domain_id, project_domain_name);
  if (!user || password === undefined || !project)
    throw new Fatal(
      `platform.cloud: ${where} needs application_credential_id and application_credential_secret, or username, password and project_name.`,
    );
  return {
    identity: { methods: ['password'], password: { user: { ...user, password } } },
    scope: { project },
  };
}

function identified(id?: string, name?: string, domainId?: string, domainName = 'Default') {
  if (id !== undefined) return { id };
  return name && { name, domain: domainId === undefined ? { name: domainName } : { id: domainId } };
}
