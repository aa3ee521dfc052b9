import type { CloudInit, CloudInitFile } from '../../contract/cloud-init.ts';
import type { MachineSpec } from '../model/platform-driver.ts';

/** What the provider adds to a machine, beside the tenant's keys. */
export interface ProviderPart {
  /** Whom the keys let in: the login user of the image, which is made where the image has none. */
  loginUser: string;
  /** An Ed25519 host key that was made beforehand: OpenSSH PEM, and the line of its `.pub` file. */
  hostKey?: { privateKey: string; publicKey: string };
}

/** The two documents of one machine's first boot. Both are `#cloud-config` with a JSON body, which is YAML too. */
export interface RenderedCloudInit {
  /** The provider's: user, keys, host name, SSH. */
  vendorData: string;
  /** The tenant's: the fields of O: CloudInitConfig and nothing else, so that it cannot displace the provider's. */
  userData: string;
}

type Rendered = Pick<MachineSpec, 'hostname' | 'sshKeys' | 'cloudInit'>;

/**
 * What cloud-init is given for a machine. The vendor data uses no field that the user data may have: where both have one,
 * cloud-init takes the user data's.
 */
export function renderCloudInit(
  { hostname, sshKeys, cloudInit }: Rendered,
  { loginUser, hostKey }: ProviderPart,
): RenderedCloudInit {
  const provided = {
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
  return { vendorData: toCloudConfig(provided), userData: renderUserData(cloudInit) };
}

/** The tenant's part alone: its length decides whether a platform can be given it. */
export function renderUserData(cloudInit: CloudInit = {}): string {
  const { runcmd, packages, package_update, package_upgrade, write_files } = cloudInit;
  return toCloudConfig({
    package_update,
    package_upgrade,
    packages,
    write_files: write_files?.map(toFile),
    runcmd,
  });
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
 * What another user than root is to own is written after the users and packages are there; cloud-init would leave out
 * it and every file after it otherwise. Commands run later still.
 */
function toFile({ path, content, owner, permissions }: CloudInitFile): object {
  const mustWait = owner !== undefined && owner !== 'root' && owner !== 'root:root';
  return { path, content, owner, permissions, ...(mustWait && { defer: true }) };
}

/** What YAML 1.1 takes for a line break, or does not let stand in a text, though JSON does. */
const UNSAFE_IN_YAML = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

/**
 * `#cloud-config` with the value as JSON. Characters above U+FFFF stay as they are: YAML reads the two escapes that JSON
 * would write for one as two characters.
 */
function toCloudConfig(value: object): string {
  const json = JSON.stringify(value, undefined, 1);
  return `#cloud-config\n${json.replace(UNSAFE_IN_YAML, toEscape)}\n`;
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
