BEGIN TRANSACTION;
CREATE TABLE device(name TEXT PRIMARY KEY, version INTEGER NOT NULL, secret BLOB NOT NULL, quiet_until TEXT NOT NULL,
  seal BLOB NOT NULL);
INSERT INTO "device" VALUES('',2,X'F59267C108476D49CA1C87934B5126BE4D5DFE70EB283AA3A8678B56BBA355FB','2030-01-05',X'6C825241D5710B342F0F91464E259C637EE430988F3195C6C2A2B6DA5CF3C9FC');
CREATE TABLE rotation(device TEXT NOT NULL, serial INTEGER NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL,
  PRIMARY KEY(device, old, serial));
CREATE TABLE spend(id INTEGER PRIMARY KEY AUTOINCREMENT, device TEXT NOT NULL, campaign TEXT NOT NULL, round INTEGER NOT NULL,
  mode TEXT NOT NULL, eps_num INTEGER NOT NULL CHECK(eps_num>=0), eps_den INTEGER NOT NULL CHECK(eps_den>0),
  manifest_hash TEXT NOT NULL, report_blob BLOB NOT NULL, day TEXT NOT NULL, send_at TEXT NOT NULL, secure INTEGER NOT NULL,
  covers TEXT NOT NULL CHECK(covers IN ('round','campaign')), state TEXT NOT NULL CHECK(state IN ('prepared','sent','acked')),
  seal BLOB NOT NULL, UNIQUE(device, campaign, round));
INSERT INTO "spend" VALUES(1,'','4877f053ad7512d83bb98d63b1a130245db3badb3be9948e7fc77d4a14d115a6',1,'one_round',1,1,'d2f97f482ab35eb268d81a39d449f7964a377c34bea58c8537e992767e6f013b',X'0100000093773F069029AA2B140ED748F6D89AC50200','2030-01-05','2030-01-11T17:03:04+00:00',1,'round','prepared',X'965B3E1BAF3F9F6360BE10CD21EADD83E0C0ADA77FC4F5090932374BBF722E0C');
CREATE UNIQUE INDEX one_answer ON spend(device, campaign) WHERE mode<>'all_rounds';
CREATE TRIGGER keep BEFORE DELETE ON spend BEGIN SELECT RAISE(ABORT,'spends are never deleted'); END;
CREATE TRIGGER fixed BEFORE UPDATE ON spend WHEN NOT ((OLD.state='prepared' OR NEW.state='acked') AND NEW.state<>'prepared' AND
  NEW.id=OLD.id AND NEW.device=OLD.device AND NEW.campaign=OLD.campaign AND NEW.round=OLD.round AND NEW.mode=OLD.mode AND
  NEW.eps_num=OLD.eps_num AND NEW.eps_den=OLD.eps_den AND NEW.manifest_hash=OLD.manifest_hash AND NEW.report_blob=OLD.report_blob
  AND NEW.day=OLD.day AND NEW.send_at=OLD.send_at AND NEW.secure=OLD.secure AND NEW.covers=OLD.covers)
  BEGIN SELECT RAISE(ABORT,'spends are never changed'); END;
CREATE TRIGGER once BEFORE INSERT ON spend WHEN NEW.state<>'prepared' OR EXISTS(SELECT 1 FROM spend WHERE id=NEW.id) OR
  EXISTS(SELECT 1 FROM spend WHERE device=NEW.device AND campaign=NEW.campaign AND (round=NEW.round OR mode<>'all_rounds'))
  BEGIN SELECT RAISE(ABORT,'a round is answered once'); END;
CREATE TRIGGER once_device BEFORE INSERT ON device WHEN EXISTS(SELECT 1 FROM device WHERE name=NEW.name)
  BEGIN SELECT RAISE(ABORT,'a device is made once'); END;
CREATE TRIGGER fixed_device BEFORE UPDATE ON device WHEN NOT (NEW.name=OLD.name AND NEW.version=OLD.version AND
  NEW.secret=OLD.secret AND NEW.quiet_until=OLD.quiet_until) BEGIN SELECT RAISE(ABORT,'a device is never changed'); END;
CREATE TRIGGER keep_device BEFORE DELETE ON device BEGIN SELECT RAISE(ABORT,'a device is never deleted'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('spend',1);
COMMIT;
