import { expect, it } from 'vitest';
import type { Server } from './api.ts';
import { fromPlatform } from './translate.ts';

const [RUNNING, OFF] = [1, 4];
const endpoint = { publicIp: '192.0.2.1', sshPort: 22, sshUsername: 'debian' };

const powerOf = (status: string, task: string | null, state: number, isComplete = true) => {
  const server: Server = {
    ...{ id: 'id', name: 'r', status, created: '2026-01-01T00:00:00Z' },
    metadata: { berth_ref: 'r', ...(isComplete && { berth_id: 'id' }) },
    'OS-EXT-STS:task_state': task,
    'OS-EXT-STS:power_state': state,
  };
  return fromPlatform(server, 'r', endpoint, undefined).power;
};

it.each([
  ['BUILD', 'spawning', 0, 'starting'],
  ['ACTIVE', null, RUNNING, 'running'],
  ['ACTIVE', 'powering-off', RUNNING, 'stopping'],
  ['ACTIVE', 'shelving_image_uploading', RUNNING, 'stopping'],
  ['ACTIVE', 'rebooting', RUNNING, 'starting'],
  ['ACTIVE', 'migrating', RUNNING, 'running'],
  ['ACTIVE', 'deleting', RUNNING, 'stopping'],
  ['PASSWORD', 'updating_password', RUNNING, 'running'],
  ['SHUTOFF', null, OFF, 'stopped'],
  ['SHUTOFF', 'powering-on', OFF, 'starting'],
  ['SHUTOFF', 'migrating', OFF, 'stopped'],
  ['PAUSED', null, 3, 'paused'],
  ['SUSPENDED', null, 7, 'paused'],
  ['SHELVED', null, OFF, 'stopped'],
  ['SHELVED', 'shelving_offloading', OFF, 'stopping'],
  ['SHELVED_OFFLOADED', null, OFF, 'stopped'],
  ['SHELVED_OFFLOADED', 'spawning', OFF, 'starting'],
  ['RESIZE', 'resize_migrating', RUNNING, 'starting'],
  ['VERIFY_RESIZE', null, RUNNING, 'running'],
  ['VERIFY_RESIZE', null, OFF, 'stopped'],
  ['REVERT_RESIZE', 'resize_reverting', RUNNING, 'starting'],
  ['MIGRATING', 'migrating', RUNNING, 'running'],
  ['MIGRATING', 'migrating', OFF, 'stopped'],
  ['REBOOT', 'rebooting', RUNNING, 'starting'],
  ['HARD_REBOOT', 'rebooting_hard', RUNNING, 'starting'],
  ['REBUILD', 'rebuilding', RUNNING, 'starting'],
  ['RESCUE', null, RUNNING, 'starting'],
  ['ERROR', null, RUNNING, 'running'],
  ['ERROR', null, 0, 'paused'],
  ['SOFT_DELETED', null, OFF, 'stopping'],
  ['DELETED', null, 0, 'starting'],
  ['UNKNOWN', null, 0, 'starting'],
  ['A_STATUS_OF_A_LATER_NOVA', null, RUNNING, 'starting'],
])('a server in %s, %s, with the power state %i is %s [openstack-states]', (status, task, state, power) => {
  expect(powerOf(status, task, state)).toBe(power);
});

it.each([
  ['BUILD', 'building'],
  ['ACTIVE', 'building'],
  ['ERROR', 'failed'],
])('a server in %s whose creation is not complete is %s', (status, power) => {
  expect(powerOf(status, null, RUNNING, false)).toBe(power);
});
