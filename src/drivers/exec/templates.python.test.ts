import { describeTemplate } from './templates.suite.ts';

describeTemplate('python/driver.py', 'python3');
