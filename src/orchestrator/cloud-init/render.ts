import type { CloudInit, CloudInitFile } from '../../contract/cloud-init.ts';
import type { MachineSpec } from '../model/platform-driver.ts';

/** The provider's part of a machine's cloud-init, besides the tenant's keys. */
export interface ProviderPart {
  /** The user that the keys give access to. It is the login user of the image, and is made if the image has none. */
  loginUser: string;
  /** An Ed25519 host key made beforehand: OpenSSH PEM, and the line of its `.pub` file. */
  hostKey?: { privateKey: string; publicKey: string };
}

/** The two documents of a machine's first boot. Both are `#cloud-config` with a JSON body, which is valid YAML. */
export interface RenderedCloudInit {
  /** The provider's document: user, keys, host name, SSH. */
  vendorData: string;
  /** The tenant's document: only the fields of O: CloudInitConfig, so that it cannot override the provider's. */
  userData: string;
}

type Rendered = Pick<MachineSpec, 'hostname' | 'sshKeys' | 'cloudInit'>;

/**
 * Renders cloud-init for a machine. The vendor data uses no field that the user data may have: if both have one,
 * cloud-init uses the user data's.
 */
export function renderCloudInit(spec: Rendered, part: ProviderPart): RenderedCloudInit {
  return { vendorData: toCloudConfig(providedOf(spec, part)), userData: renderUserData(spec.cloudInit) };
}

/** Renders both parts as one document, for platforms that pass on user data only. The two have no field in common. */
export function renderOneDocument(spec: Rendered, part: ProviderPart): string {
  return toCloudConfig({ ...tenantsOf(spec.cloudInit), ...providedOf(spec, part) });
}

function providedOf({ hostname, sshKeys }: Rendered, { loginUser, hostKey }: ProviderPart): object {
  return {
    hostname,
    manage_etc_hosts: 'localhost',
    users: [loginOf(loginUser, sshKeys)],
    disable_root: loginUser !== 'root',
    ssh_pwauth: false,
    ssh_deletekeys: true,
    ...(hostKey !== undefined && {
      ssh_keys: { ed25519_private: hostKey.privateKey, ed25519_public: hostKey.publicKey },
    }),
  };
}

/** The tenant's part alone. Its length decides whether a platform accepts it. */
export function renderUserData(cloudInit: CloudInit | undefined): string {
  return toCloudConfig(tenantsOf(cloudInit));
}

function tenantsOf(cloudInit: CloudInit = {}): object {
  const { runcmd, packages, package_update, package_upgrade, write_files } = cloudInit;
  return { package_update, package_upgrade, packages, write_files: write_files?.map(toFile), runcmd };
}

function loginOf(name: string, sshKeys: readonly string[]): object {
  if (name === 'root') return { name, ssh_authorized_keys: sshKeys };
  return {
    name,
    ssh_authorized_keys: sshKeys,
    lock_passwd: true,
    shell: '/bin/bash',
    sudo: 'ALL=(ALL) NOPASSWD:ALL',
  };
}

/**
 * A file with another owner than root is written after the users and packages exist. Otherwise cloud-init would skip it
 * and every file after it. Commands run even later.
 */
function toFile({ path, content, owner, permissions }: CloudInitFile): object {
  const mustWait = owner !== undefined && owner !== 'root' && owner !== 'root:root';
  return { path, content, owner, permissions, ...(mustWait && { defer: true }) };
}

/** Characters that JSON allows, but that YAML 1.1 reads as a line break or forbids in text. */
const UNSAFE_IN_YAML = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/**
 * `#cloud-config` with the value as JSON. Characters above U+FFFF are not escaped: YAML reads JSON's two escapes for
 * one of them as two characters.
 */
function toCloudConfig(value: object): string {
  const json = JSON.stringify(value, undefined, 1);
  return `#cloud-config\n${json.replace(UNSAFE_IN_YAML, toEscape)}\n`;
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
