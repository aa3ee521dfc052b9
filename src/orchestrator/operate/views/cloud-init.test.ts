import { expect, it } from 'vitest';
import { readCloudInit } from './cloud-init.ts';

const BEGAN =
  "[   11.203441] cloud-init[612]: Cloud-init v. 24.4 running 'init' at Mon, 01 Jun 2026 10:00:00 +0000.";
const ENDED =
  'cloud-init[988]: Cloud-init v. 24.4 finished at Mon, 01 Jun 2026 10:00:31 +0000. Datasource DataSourceNoCloud [seed=/dev/sr0].  Up 31.20 seconds';
const SCRIPT =
  '2026-06-01 10:00:30,812 - cc_scripts_user.py[WARNING]: Failed to run module scripts_user (scripts in /var/lib/cloud/instance/scripts)';

it.each([
  ['nothing of it', ['Linux version 6.1', 'login:'], undefined],
  ['its beginning', ['Linux', BEGAN, 'Starting sshd'], { status: 'running', line: BEGAN }],
  ['its end', [BEGAN, ENDED, 'login:'], { status: 'done', line: ENDED }],
  ['a script that failed, and its end', [BEGAN, SCRIPT, ENDED], { status: 'error', line: SCRIPT }],
  [
    'a unit that systemd could not start',
    [BEGAN, '[FAILED] Failed to start cloud-init.service - Cloud-init: Network Stage.'],
    { status: 'error', line: '[FAILED] Failed to start cloud-init.service - Cloud-init: Network Stage.' },
  ],
  ['only failures of others', ['[FAILED] Failed to start ssh.service.'], undefined],
])('reads the cloud-init status from a console: %s [cloud-init-status]', (_what, lines, expected) => {
  expect(readCloudInit(lines.join('\n'))).toEqual(expected);
});
